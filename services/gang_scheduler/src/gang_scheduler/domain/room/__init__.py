"""How much room there is for which pods, and trials that take of it."""
