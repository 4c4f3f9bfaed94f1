"""What outlives the agent, as JSON: what best effort is held to, raised quotas, who was asked to leave, and which files were
written."""

from dataclasses import asdict
from typing import Any

from kube.node_evictions import Wish
from node_agent.domain.colocation.bursts import Raised
from node_agent.domain.colocation.core import Kept
from node_agent.domain.colocation.eviction_goals import Kind
from node_agent.domain.colocation.evictions import Asked
from node_agent.domain.colocation.groups import Group, Knobs, Tier
from node_agent.domain.colocation.suppression import Held


def encode(kept: Kept, written: Knobs) -> dict[str, Any]:
    """Both as JSON can hold them."""
    return {
        "held": {"quota_milli": kept.held.quota_milli, "cpus": list(kept.held.cpus)},
        "raised": [[*key, asdict(one)] for key, one in kept.raised.items()],
        "asked": [asdict(wish) for wish in kept.asked.wishes.values()],
        "paused_until": {kind.value: until for kind, until in kept.asked.paused_until.items()},
        "written": [[*group, dict(files)] for group, files in written.items()],
    }


def decode(data: dict[str, Any]) -> tuple[Kept, Knobs]:
    """What ``encode`` gave; raises AttributeError, KeyError, TypeError or ValueError for anything else."""
    quota = data["held"]["quota_milli"]
    held = Held(None if quota is None else int(quota), tuple(int(cpu) for cpu in data["held"]["cpus"]))
    raised = {(str(uid), str(name)): _raised(one) for uid, name, one in data["raised"]}
    wishes = {str(one["uid"]): _wish(one) for one in data["asked"]}
    paused = {Kind(kind): int(until) for kind, until in data["paused_until"].items()}
    written = {
        Group(Tier(tier), str(pod), str(container)): {str(name): str(text) for name, text in files.items()}
        for tier, pod, container, files in data["written"]
    }
    return Kept(held, raised, Asked(wishes, paused)), written


def _raised(one: dict[str, Any]) -> Raised:
    return Raised(**{name: int(amount) for name, amount in one.items()})


def _wish(one: dict[str, Any]) -> Wish:
    words = {name: str(one[name]) for name in ("uid", "namespace", "name", "reason", "message")}
    return Wish(**words, at=int(one["at"]))
