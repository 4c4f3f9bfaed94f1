"""What the facts say: inference services, their shares, and the replicas that are ready."""
