"""What queues, quotas and cohorts are given, read from their objects."""
