"""Why something waits or is refused, in words and in statuses."""
