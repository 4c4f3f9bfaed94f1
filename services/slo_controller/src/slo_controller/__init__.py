"""How much may be lent on each node?"""
