"""The services of the system, by the names under which they are started, read logs and decide."""

DECIDERS = (
    "job_controller",
    "queue_manager",
    "gang_scheduler",
    "descheduler",
    "slo_controller",
    "inference_autoscaler",
)
"""Those that have a log of decisions."""

SERVICES = ("cluster_gateway", "admission", *DECIDERS, "inference_gateway", "node_agent")
"""All of them, in the order in which they start."""
