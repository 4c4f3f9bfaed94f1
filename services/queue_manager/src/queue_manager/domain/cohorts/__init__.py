"""ClusterQueues and cohorts: quota first, by flavors, borrowed and taken back."""
