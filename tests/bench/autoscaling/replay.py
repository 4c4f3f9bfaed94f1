"""Requests against an autoscaler: replicas that take their time to start, and what the autoscaler sees of it all."""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from tests.bench.autoscaling.queue_model import Floats, Queue, Requests, Seen

STEP_SECONDS = 1
WARM_SECONDS = 300
"""Requests of the first minutes are not judged: whoever begins with one replica knows nothing yet."""
LATE_SECONDS = 1.0
SLOTS = 16
"""How many requests one replica answers at once."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """The replicas at ``now`` (seconds): how many are wanted, how many of these serve, and when each of the others was made."""

    now: int
    wanted: int
    ready: int
    made: tuple[int, ...] = ()


class Autoscaler(Protocol):
    """Decides how many replicas there should be."""

    def look(self, seen: Seen, fleet: Fleet) -> int:
        """Once a second: what was seen since the last time, and how many are wanted from now on."""


@dataclass(slots=True)
class Outcome:
    """Of one replay: how many requests waited too long, in percent, and the replicas wanted over the time, in hours."""

    late_percent: float
    replica_hours: float
    wait: Floats
    wanted: list[int] = field(default_factory=list)
    ready: list[int] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)
    arrived: list[int] = field(default_factory=list)


class Replicas:
    """They serve ``start`` seconds after they were made. Those that are not yet ready go first, the youngest before the others."""

    def __init__(self, start: int, first: int) -> None:
        self._start = start
        self.ready = first
        self.made: list[int] = []

    def pass_time(self, now: int) -> None:
        """Those whose time has come serve."""
        while self.made and self.made[0] + self._start <= now:
            self.made.pop(0)
            self.ready += 1

    def become(self, wanted: int, now: int) -> None:
        """So many are wanted from now on."""
        more = wanted - self.ready - len(self.made)
        self.made += [now] * max(more, 0)
        gone = min(max(-more, 0), len(self.made))
        del self.made[len(self.made) - gone :]
        self.ready -= max(-more, 0) - gone


def replay(requests: Requests, autoscaler: Autoscaler, start: int, first: int = 1, slots: int = SLOTS) -> Outcome:
    """Play all ``requests``, with ``first`` replicas that serve at the beginning."""
    queue, replicas, wanted, found = Queue(requests), Replicas(start, first), first, Outcome(0, 0, np.empty(0))
    for now in range(STEP_SECONDS, requests.seconds + 1, STEP_SECONDS):
        seen = queue.advance(now, replicas.ready * slots)
        found.wanted.append(wanted)
        found.ready.append(replicas.ready)
        found.busy.append(seen.busy)
        found.arrived.append(seen.arrived)
        replicas.pass_time(now)
        wanted = autoscaler.look(seen, Fleet(now, wanted, replicas.ready, tuple(replicas.made)))
        replicas.become(wanted, now)
    found.wait = queue.finish(replicas.ready * slots)
    judged = requests.arrive > WARM_SECONDS
    found.late_percent = float(100 * np.mean(found.wait[judged] > LATE_SECONDS))
    found.replica_hours = sum(found.wanted) * STEP_SECONDS / 3600
    return found
