"""Domains of the network."""
