"""HPA, Knative and KEDA as Tidegate has them: the same functions that decide in the service, asked directly.

Each goes by the requests in the system, waiting ones too: that is what a gateway can count.
"""

from dataclasses import dataclass, field
from math import ceil

from tests.bench.autoscaling.queue_model import Requests, Seen, offered
from tests.bench.autoscaling.replay import SLOTS, Fleet

from inference_autoscaler.domain.horizontal.desk import SYNC_MS
from inference_autoscaler.domain.horizontal.history import History
from inference_autoscaler.domain.horizontal.proposal import Proposal, Size, Tolerance, from_total
from inference_autoscaler.domain.horizontal.scaling_rules import DOWN, UP
from inference_autoscaler.domain.horizontal.spec import AVERAGE_VALUE, EXTERNAL, Horizontal, Metric, Target
from inference_autoscaler.domain.horizontal.verdict import judge
from inference_autoscaler.domain.keda.executor import Poll, step
from inference_autoscaler.domain.keda.scaled_object import Scaled
from inference_autoscaler.domain.knative.bounds import Life, size
from inference_autoscaler.domain.knative.configuration import KnativeConfiguration
from inference_autoscaler.domain.knative.decider import TICK_MS, Panic, wish
from inference_autoscaler.domain.knative.load import Load
from inference_autoscaler.domain.knative.scaling import GROUP, read
from kube import Key

MOST = 200
POLL_MS, COOLDOWN_MS = 30_000, 300_000
_TARGET = Key("Deployment.apps", "default", "model")
_SCALED = Scaled(_TARGET, 0, MOST, None, POLL_MS, COOLDOWN_MS, 0, ())


@dataclass(slots=True)
class Horizontal70:
    """autoscaling/v2 with its defaults, by an external metric: on average so many percent of a replica's slots."""

    percent: int = 70
    history: History = field(default_factory=lambda: History("uid"))

    def look(self, seen: Seen, fleet: Fleet) -> int:
        """Every 15 seconds."""
        now = fleet.now * 1000
        if now % SYNC_MS:
            return fleet.wanted
        return self.judged(round(seen.in_flight * 1000), fleet.wanted, now, least=1)

    def judged(self, total_milli: int, wanted: int, now: int, least: int) -> int:
        """What the autoscaler comes to at ``now`` in milliseconds."""
        metric = Metric(EXTERNAL, "concurrency", Target(AVERAGE_VALUE, SLOTS * self.percent * 10))
        spec = Horizontal(_TARGET, least, MOST, (metric,), False, UP, DOWN)
        near = Tolerance(spec.down.tolerance_nano, spec.up.tolerance_nano)

        def measure(asked: Metric, there: Size) -> Proposal:
            return from_total(asked, there, total_milli, near)

        verdict = judge(spec, Size(wanted, ()), self.history, measure, now, zeroed=False, rivals=())
        self.history.note(now, verdict.answer)
        return verdict.replicas


@dataclass(slots=True)
class Knative:
    """Knative's autoscaler with its defaults, for replicas with as many requests at once as they have slots."""

    panic: Panic = field(default_factory=Panic)
    life: Life = field(default_factory=Life)
    load: Load = field(default_factory=Load)
    percent: int = 70

    def look(self, seen: Seen, fleet: Fleet) -> int:
        """Every two seconds."""
        now = fleet.now * 1000
        self.load.add(now, round(seen.in_flight * 1000))
        if now % TICK_MS:
            return fleet.wanted
        said = {"min-scale": "1", "target-utilization-percentage": str(self.percent)}
        annotations = {GROUP + name: value for name, value in said.items()}
        scaling = read(annotations, SLOTS, KnativeConfiguration())
        self.load.forget(now - scaling.window_ms)
        found = wish(scaling, self.load, self.panic, fleet.ready, now)
        return min(MOST, size(scaling, found, self.life, fleet.wanted, fleet.ready, now, reachable=True))


@dataclass(slots=True)
class Keda:
    """A ScaledObject with a prometheus trigger and KEDA's defaults: it decides between none and one, its autoscaler above that."""

    horizontal: Horizontal70 = field(default_factory=Horizontal70)
    last_active: int | None = None

    def look(self, seen: Seen, fleet: Fleet) -> int:
        """Its polls are every 30 seconds, its autoscaler's looks every 15."""
        now, wanted = fleet.now * 1000, fleet.wanted
        if now % POLL_MS == 0:
            active = seen.in_flight > 0
            self.last_active = now if active else self.last_active
            wanted = step(_SCALED, wanted, Poll(active, False), self.last_active, 0, now).replicas
        if now % SYNC_MS or wanted == 0 or wanted != fleet.wanted:
            return wanted
        return self.horizontal.judged(round(seen.in_flight * 1000), wanted, now, least=1)


@dataclass(slots=True)
class Foreseen:
    """Knows all requests beforehand, and has for each second the replicas that they will keep busy until a start later."""

    requests: Requests
    start: int
    slots: int = SLOTS
    _most: list[int] = field(default_factory=list)

    def look(self, seen: Seen, fleet: Fleet) -> int:
        """Each second."""
        if not self._most:
            load = offered(self.requests)
            self._most = [
                max(1, ceil(float(load[now : now + self.start + 2].max(initial=0.0)) / self.slots))
                for now in range(len(load))
            ]
        return self._most[min(fleet.now, len(self._most) - 1)]
