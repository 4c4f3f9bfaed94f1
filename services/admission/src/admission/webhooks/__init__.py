"""Admission as webhooks of a Kubernetes API server: certificates of our own, registration, and the server."""
