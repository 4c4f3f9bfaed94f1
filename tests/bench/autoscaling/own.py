"""Tidegate's own autoscaler: a goal in the user's words, and replicas that take their time to start."""

from dataclasses import dataclass, field

from tests.bench.autoscaling.queue_model import Seen
from tests.bench.autoscaling.replay import SLOTS, Fleet

from inference_autoscaler.domain.target.goal import Goal
from inference_autoscaler.domain.target.plan import Fleet as Known
from inference_autoscaler.domain.target.plan import plan
from inference_autoscaler.domain.target.watch import Model, Sample, Watch

TICK_SECONDS = 2


@dataclass(slots=True)
class ByGoal:
    """``start`` is how long a replica takes, in seconds, as it would have been learned."""

    start: int
    goal: Goal = field(default_factory=lambda: Goal.of("queue wait <= 1s"))
    slots: int = SLOTS
    spare: int = 0
    watch: Watch = field(default_factory=Watch)
    why: list[str] = field(default_factory=list)
    _seen: list[Seen] = field(default_factory=list)

    def look(self, seen: Seen, fleet: Fleet) -> int:
        """Every two seconds."""
        self._seen.append(seen)
        if fleet.now % TICK_SECONDS:
            return fleet.wanted
        in_flight = round(sum(one.in_flight for one in self._seen) * 1000 / len(self._seen))
        came = sum(one.arrived for one in self._seen) * 1000
        now, model, self._seen = fleet.now * 1000, Model(self.slots, self.start * 1000), []
        self.watch.take(Sample(now, TICK_SECONDS * 1000, came, in_flight), self.goal, model, fleet.ready)
        etas = [(made + self.start) * 1000 - now for made in fleet.made]
        found = plan(self.watch, self.goal, model, Known(fleet.wanted, fleet.ready, etas), spare=self.spare)
        self.why.append(found.why)
        return max(1, found.pods)
