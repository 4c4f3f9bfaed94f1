"""The command line of Tidegate, in the manner of kubectl."""
