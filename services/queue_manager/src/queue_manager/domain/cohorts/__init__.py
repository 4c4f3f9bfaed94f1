"""Cohorts and their ClusterQueues: the books of quota, and which flavors a workload could have."""
