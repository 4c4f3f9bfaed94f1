"""How the members of a gang are placed together: roles, minima, and domains that they may not leave."""
