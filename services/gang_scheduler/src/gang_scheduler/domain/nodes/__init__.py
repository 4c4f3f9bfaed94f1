"""Nodes: what they have, what of it is used and measured."""
