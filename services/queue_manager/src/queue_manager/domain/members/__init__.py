"""Pods and their groups as far as queues are concerned, and what they ask for together."""
