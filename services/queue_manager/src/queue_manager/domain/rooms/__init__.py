"""Whether the nodes of a flavor have room for pods that want to be near each other."""
