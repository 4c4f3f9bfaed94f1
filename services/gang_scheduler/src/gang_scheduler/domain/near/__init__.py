"""Pods that care which pods are around them: affinity, anti-affinity, spreading."""
