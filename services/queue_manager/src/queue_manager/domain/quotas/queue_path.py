"""The older way to say where a Volcano queue hangs: its path, and a weight for each step of it.

``volcano.sh/hierarchy: root/science/physics`` with ``volcano.sh/hierarchy-weights: 1/2/8`` puts a queue below a step
``root/science`` of weight 2, with a weight of 8 beside the other queues there. Steps are no objects: they are queues without
limits, that are there as long as a path leads through them. Where paths give a step different weights, the one of the queue
that is first by name counts. A queue that names its parent hangs there, whatever its path says.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from kube import Object

PATH, WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"
ROOT = "root"
_MILLI = 1000


class Step(NamedTuple):
    """A step of a path: its name, which is the path up to it, the step above, and its weight in thousandths."""

    name: str
    above: str
    weight_milli: int


class QueuePath(NamedTuple):
    """Where a queue hangs by its path; ``steps`` are those between the root and it, from above."""

    steps: tuple[Step, ...]
    weight_milli: int

    @property
    def parent(self) -> str:
        return self.steps[-1].name if self.steps else ROOT


def read_path(item: Object) -> QueuePath | None:
    """The path of a queue; None where it has none, one that cannot be read, or a parent of its own."""
    named = item.spec.get("parent") or ROOT
    parts = [part for part in item.annotations.get(PATH, "").split("/") if part]
    weights = [_weight(text) for text in item.annotations.get(WEIGHTS, "").split("/")]
    if named != ROOT or len(parts) < 2 or parts[0] != ROOT or len(parts) != len(weights) or None in weights:
        return None
    names = ["/".join(parts[: end + 1]) for end in range(len(parts))]
    known = [weight for weight in weights if weight]
    steps = (Step(names[at], names[at - 1], known[at]) for at in range(1, len(parts) - 1))
    return QueuePath(tuple(steps), known[-1])


@dataclass(slots=True)
class Steps:
    """All steps that paths lead through, each with the queues whose paths these are."""

    _users: dict[str, dict[str, Step]] = field(default_factory=dict)

    def put(self, queue: str, steps: Iterable[Step]) -> None:
        """The path of a queue leads through ``steps`` now."""
        for name in [name for name, users in self._users.items() if queue in users]:
            del self._users[name][queue]
        for step in steps:
            self._users.setdefault(step.name, {})[queue] = step
        self._users = {name: users for name, users in self._users.items() if users}

    def all(self) -> list[Step]:
        """The steps by name."""
        return [users[min(users)] for _, users in sorted(self._users.items())]


def _weight(text: str) -> int | None:
    """A weight in thousandths; None for what is no number above 0."""
    try:
        weight = int(Decimal(text) * _MILLI)
    except (InvalidOperation, ValueError, OverflowError):
        return None
    return weight if weight > 0 else None
