"""The cluster as far as sizes go: pods by their labels, and what can be scaled."""
