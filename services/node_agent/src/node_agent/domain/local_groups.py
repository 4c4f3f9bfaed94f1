"""Where the control groups of pods stand that the agent runs itself, below the node's own.

<uid>/<container>               pods that serve compete by their weights
besteffort/<uid>/<container>    best effort competes as one, with the least weight that there is
"""

from kube import Manifest
from node_agent.domain.colocation.groups import Tier
from node_agent.domain.colocation.pods import node_pod

BEST_EFFORT = Tier.BEST_EFFORT.value


def pod_folder(uid: str, best_effort: bool) -> str:
    """The folder of a pod's group."""
    return f"{BEST_EFFORT}/{uid}" if best_effort else uid


def is_best_effort(manifest: Manifest) -> bool:
    """Whether a pod stands below best effort's group; one that cannot be read does not: it never runs."""
    try:
        return not node_pod(manifest).online
    except (AttributeError, KeyError, TypeError, ValueError):
        return False


def pod_of(folder: str) -> str:
    """The folder of the pod to which ``folder`` belongs: itself, or the one that it is in."""
    parts = folder.split("/")
    return "/".join(parts[: 2 if parts[0] == BEST_EFFORT else 1])


def is_container(folder: str) -> bool:
    """Whether ``folder`` is of a container."""
    return folder != pod_of(folder)


def tier_folder(tier: Tier) -> str | None:
    """The folder of a tier; None for one that is not kept apart here."""
    return {Tier.BEST_EFFORT: BEST_EFFORT, Tier.GUARANTEED: ""}.get(tier)
