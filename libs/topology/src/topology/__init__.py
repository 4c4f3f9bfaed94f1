"""Pod sets in the domains of a topology."""
