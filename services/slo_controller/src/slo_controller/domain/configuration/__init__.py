"""What operators configure: the ConfigMap, its strategies for nodes, and what of it makes sense."""
