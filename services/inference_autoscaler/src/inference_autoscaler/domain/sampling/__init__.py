"""Which samples autoscalers go by, and where each is to be asked for: learned from the objects, asked by `sources`."""
