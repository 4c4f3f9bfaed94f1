"""What would change for the objects of a cluster if Tidegate acted on them."""
