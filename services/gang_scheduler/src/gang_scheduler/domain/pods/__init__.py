"""Pods and the groups that they are members of: their shapes, how they stand."""
