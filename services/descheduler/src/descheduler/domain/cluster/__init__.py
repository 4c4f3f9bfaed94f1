"""The cluster as facts tell it: nodes and their pods, whose pods they are, and where there is room."""
