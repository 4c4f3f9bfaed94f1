"""Workloads: what stands for which work, and what users read of it."""
