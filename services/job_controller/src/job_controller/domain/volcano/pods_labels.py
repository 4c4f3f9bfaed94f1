"""Labels by which the pods of a Volcano Job are found."""

JOB_NAME = "volcano.sh/job-name"
JOB_NAMESPACE = "volcano.sh/job-namespace"
