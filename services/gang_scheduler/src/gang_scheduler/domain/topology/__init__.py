"""Domains of the network, and placements that have to stay within one."""
