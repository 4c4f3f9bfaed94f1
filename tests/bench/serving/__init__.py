"""Triton behind the gateway under a load that changes: real processes, real time."""
