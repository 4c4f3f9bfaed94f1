"""What a node and its pods use: CPU time between two looks, memory at the second."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kube import Manifest
from kube.node_slo import EXTENSIONS, REPORT_INTERVAL

NODE = ""
"""Stands for the node itself among the uids of its pods."""


@dataclass(frozen=True, slots=True)
class Consumption:
    """What a control group used: CPU time since it was made, memory now without what the kernel can take back at once."""

    cpu_ns: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class UsageSample:
    """What one pod (or the node, when ``uid`` is "", or a container, ``<uid>/<name>``) used: CPU over the interval until ``at``,
    memory at ``at``.
    """

    uid: str
    at: int
    cpu_milli: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Look:
    """The CPU time by uid that had been used ``at`` a moment, in milliseconds since the epoch."""

    at: int
    cpu_ns: Mapping[str, int]


def look(at: int, used: Mapping[str, Consumption]) -> Look:
    """What is to be remembered of ``used``."""
    return Look(at, {uid: one.cpu_ns for uid, one in used.items()})


def of_container(uid: str, name: str) -> str:
    """Stands for a container among the uids of pods."""
    return f"{uid}/{name}"


def with_only_containers(found: tuple[UsageSample, ...], only: Mapping[str, str]) -> tuple[UsageSample, ...]:
    """With samples of containers that are all there is of their pods: ``only`` has their names by uid."""
    alone = [replace(one, uid=of_container(one.uid, only[one.uid])) for one in found if one.uid in only]
    return (*found, *alone)


def samples(
    before: Look | None, at: int, used: Mapping[str, Consumption], began: Mapping[str, int]
) -> tuple[UsageSample, ...]:
    """A sample of each uid that was seen ``before``, or that ``began`` to use at a known time."""
    known = before.cpu_ns if before is not None else {}
    found: list[UsageSample] = []
    for uid, one in used.items():
        since = before.at if before is not None and uid in known else began.get(uid)
        if since is not None and at > since:
            spent = max(0, one.cpu_ns - known.get(uid, 0))
            found.append(UsageSample(uid, at, spent // ((at - since) * 1000), one.memory_bytes))
    return tuple(found)


def report_interval_ms(slo: Manifest, otherwise: int) -> int:
    """How often use is to be told, as the spec of a NodeSLO says; ``otherwise`` where it says nothing that makes sense."""
    extensions = slo.get(EXTENSIONS)
    seconds = extensions.get(REPORT_INTERVAL) if isinstance(extensions, dict) else None
    return seconds * 1000 if isinstance(seconds, int) and seconds > 0 else otherwise
