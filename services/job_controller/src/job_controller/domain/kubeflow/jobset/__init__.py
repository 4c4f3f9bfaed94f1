"""JobSet (``jobset.x-k8s.io/v1alpha2``): groups of batch/v1 Jobs that start, fail, restart and succeed by one set of rules."""
