"""The pure part of the node agent: what a pod's containers should do next, and how that reads in Kubernetes' words."""
