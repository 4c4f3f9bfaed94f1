"""What the node has: processors, memory, NUMA nodes, GPUs."""
