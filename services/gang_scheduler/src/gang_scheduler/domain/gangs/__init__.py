"""Gangs: what they ask for, how they stand, and how their members are placed together."""
