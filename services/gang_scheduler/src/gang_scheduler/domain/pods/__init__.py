"""Pods: their shapes, their books, where they are."""
