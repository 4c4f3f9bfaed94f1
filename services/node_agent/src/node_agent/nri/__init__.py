"""A plug-in of container runtimes (NRI): what is decided about a container holds from its first instruction."""
