"""How good a node is: packing, spreading, and what a placement leaves for those to come."""
