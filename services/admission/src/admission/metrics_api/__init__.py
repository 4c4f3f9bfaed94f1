"""Kubernetes' metrics APIs behind its API server: who asks, what they may, and the samples that stand."""
