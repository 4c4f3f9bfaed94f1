"""Vectors over nodes, and the labels of nodes as such."""
