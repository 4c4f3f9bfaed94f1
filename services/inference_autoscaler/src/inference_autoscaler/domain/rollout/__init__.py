"""Taking a revision into use in steps, and back where it does worse than the one before."""
