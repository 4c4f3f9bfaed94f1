"""Batch work beside online services on one node: what the kernel is told, and which pods have to leave."""
