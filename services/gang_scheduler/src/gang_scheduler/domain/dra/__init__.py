"""Dynamic resource allocation (resource.k8s.io/v1): which devices of which slices a pod's claims get."""
