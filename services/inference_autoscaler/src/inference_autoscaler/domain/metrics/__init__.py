"""What was measured: samples of pods, objects, services and of things outside the cluster."""
