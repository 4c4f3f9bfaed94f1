"""Who changes what is a fact: users by their names, and the system's own parts by theirs."""

PARTS = frozenset(
    (
        "admission",
        "job_controller",
        "queue_manager",
        "gang_scheduler",
        "descheduler",
        "slo_controller",
        "cluster_gateway",
        "node_agent",
        "cluster",
        "",
    )
)
_OF_NODES = "node/"


def is_part(author: str) -> bool:
    """Whether a part of the system goes by this name. No user may: a write would pass for a decision."""
    return author in PARTS or author.startswith(_OF_NODES)
