"""Knative's autoscaler: two windows, panic, and the way to zero."""
