"""Which roles of a job should be beside each other on a node, and which apart: Volcano's task-topology annotations."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_PREFIX = "volcano.sh/task-topology-"
AFFINITY, ANTI_AFFINITY, ORDER = _PREFIX + "affinity", _PREFIX + "anti-affinity", _PREFIX + "task-order"

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class TaskTopology:
    """``near`` and ``apart`` hold pairs of roles, both ways round; a pair of one role with itself is about its replicas."""

    near: frozenset[Pair]
    apart: frozenset[Pair]
    order: tuple[str, ...] = ()
    roles: frozenset[str] = frozenset()
    """The roles that anything is said about."""

    def pull(self, role: str, beside: Mapping[str, int]) -> int:
        """How many of those ``beside`` a pod of ``role`` wants to be with, less those it wants to be apart from."""
        return sum(count * ((role, other) in self.near) for other, count in beside.items()) - self.push(role, beside)

    def push(self, role: str, beside: Mapping[str, int]) -> int:
        """How many of those ``beside`` a pod of ``role`` wants to be apart from."""
        return sum(count * ((role, other) in self.apart) for other, count in beside.items())


def task_topology_of(annotations: Mapping[str, str]) -> TaskTopology | None:
    """What a PodGroup's annotations ask for, ``ps,worker;chief`` being two sets of roles; None where they ask for nothing."""
    near, apart = (frozenset(_pairs(annotations.get(name, ""))) for name in (AFFINITY, ANTI_AFFINITY))
    if not near and not apart:
        return None
    roles = frozenset(role for pair in near | apart for role in pair)
    return TaskTopology(near, apart, tuple(_words(annotations.get(ORDER, ""), ",")), roles)


def _pairs(text: str) -> Iterator[Pair]:
    for part in _words(text, ";"):
        roles = _words(part, ",")
        if len(roles) == 1:
            yield roles[0], roles[0]
        yield from ((one, other) for one in roles for other in roles if one != other)


def _words(text: str, separator: str) -> list[str]:
    return [word.strip() for word in text.split(separator) if word.strip()]
