"""Balancing by what nodes really use."""
