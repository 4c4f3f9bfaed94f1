"""What manifests of pods, groups and queues say, read once."""
