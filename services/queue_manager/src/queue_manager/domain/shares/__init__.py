"""Trees of queues that share: what each wants, deserves, and has."""
