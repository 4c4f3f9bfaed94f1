"""The part of the node agent that touches the machine: processes, namespaces, cgroups, folders, files."""
