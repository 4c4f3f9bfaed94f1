"""What is wanted: the arguments, read."""
