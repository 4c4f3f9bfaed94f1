"""What was measured of a node at one moment, for those who decide by it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Use(NamedTuple):
    """CPU since the sample before, and memory at the moment of this one."""

    cpu_milli: int = 0
    memory_bytes: int = 0


NO_USE = Use()


class Stall(NamedTuple):
    """What a pod feels. First the part of the time, in thousandths, in which some task of it waited: for what others had, or its quota."""

    cpu: int = 0
    memory: int = 0
    io: int = 0
    quota: int = 0
    cpi: int = 0
    """Not time, but cycles for each thousand instructions; 0 where these are not counted, or were too few to tell."""
    stretch: int = 0
    """Microseconds of CPU that its tasks took at a time, from one wait of their own to the next; 0 where cycles are counted."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at a node, taken ``at`` a moment. What is said of pods is by uid, of programs of the node by name."""

    at: int
    node: Use
    pods: Mapping[str, Use] = field(default_factory=dict)
    host_applications: Mapping[str, Use] = field(default_factory=dict)
    throttled: frozenset[tuple[str, str]] = frozenset()
    """The containers, as uid and name, that met their CPU quota since the sample before."""
    stalls: Mapping[str, Stall] = field(default_factory=dict)
    over_ms: int = 1_000
    """How long that was: a look that begins when online pods begin to use more is soon followed by the next one."""

    def of(self, uid: str) -> Use:
        """What a pod used; nothing where it was not measured."""
        return self.pods.get(uid, NO_USE)
