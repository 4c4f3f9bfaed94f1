"""How large things may be that users hand in."""

MOST_OBJECT_BYTES = 3 << 20
"""Of one object as JSON: as much as a request to an API server of Kubernetes may have."""
