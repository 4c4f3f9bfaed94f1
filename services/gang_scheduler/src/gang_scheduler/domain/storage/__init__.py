"""Volumes and claims: where a pod's storage lets it go."""
