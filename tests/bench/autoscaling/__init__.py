"""Requests replayed in virtual time against autoscalers: how many are late, and how many replicas that takes."""
