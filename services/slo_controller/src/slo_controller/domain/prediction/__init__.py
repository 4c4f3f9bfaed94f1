"""What is going to be used, from what was: histograms that forget, by workload and by node."""
