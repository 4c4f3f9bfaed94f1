"""Nodes: what they have, what of it is used and measured, and how a shape of pod sees them all."""
