"""Cards, NICs, CPUs and NUMA nodes: who has which, and who would get which."""
