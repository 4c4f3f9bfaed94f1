"""What queues may use, as the queue manager says, and what they use."""
