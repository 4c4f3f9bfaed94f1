"""The core of inference_autoscaler: facts and samples in, sizes out."""

import json
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict

from inference_autoscaler.domain.cluster.pod_index import PodIndex
from inference_autoscaler.domain.cluster.scale import SCALABLE
from inference_autoscaler.domain.horizontal.desk import HorizontalDesk
from inference_autoscaler.domain.horizontal.spec import AUTOSCALER, Metric
from inference_autoscaler.domain.metrics.reading import POD, READING
from inference_autoscaler.domain.metrics.readings import Readings
from inference_autoscaler.domain.policy import AutoscalerPolicy
from kube import Decision, Event, Key, Manifest, Outcome, Store
from kube.scheduling_pause import SWITCH, pause_of

_INTEREST = frozenset((AUTOSCALER, READING, POD, "ConfigMap", *SCALABLE))


def concerns(kind: str, metadata: Manifest) -> bool:
    """Whether objects of ``kind`` can matter to what is decided here."""
    return kind in _INTEREST


class AutoscalerCore:
    """How many replicas, and which revision gets what share? (the Core protocol)

    Samples never make anything happen by themselves: sizes are looked at in rounds, and when somebody changes what they
    should be. What windows look back at is remembered, so that a successor looks back as far.
    """

    def __init__(self, policy: AutoscalerPolicy | None = None) -> None:
        self._policy = policy or AutoscalerPolicy()
        self._store = Store()
        self._readings, self._pods = Readings(), PodIndex()
        self._horizontal = HorizontalDesk(self._readings, self._pods, _nobody)
        self._now = 0

    def read_from(self, store: Store) -> None:
        """Where objects are looked up."""
        self._store = self._horizontal.store = store

    def fold(self, events: Sequence[Event], now: int) -> None:
        """Take in what one change set changed."""
        self._now = max(now, self._now)
        for event in events:
            match event.key.kind:
                case "Pod":
                    self._pods.fold(event)
                case "MetricReading.tidegate.dev":
                    self._readings.fold(event)
                case "HorizontalPodAutoscaler.autoscaling":
                    self._horizontal.fold(event)

    def hear(self, service: str, decision: Decision) -> None:
        """This service listens to facts only."""

    def assume(self, decision_id: str, decision: Decision) -> None:
        """Nothing to note: the subject is in flight until its outcome, and left alone as long."""

    def settle(self, outcome: Outcome) -> None:
        """Look again at what was refused."""
        if outcome.subject.kind == AUTOSCALER:
            self._horizontal.settle(outcome)

    def decide(self, now: int, in_flight: AbstractSet[Key]) -> list[Decision]:
        """All that should happen now; nothing while an operator keeps everything as it is."""
        self._now = now
        if self._paused or not self._policy.horizontal:
            return []
        return self._horizontal.decide(now, in_flight)

    def deadline(self) -> int | None:
        """The next round."""
        return None if self._paused or not self._policy.horizontal else self._horizontal.deadline()

    def remember(self) -> bytes | None:
        """What the windows look back at."""
        if not self._horizontal.changed:
            return None
        self._horizontal.changed = False
        return json.dumps({"horizontal": self._horizontal.manifest()}, sort_keys=True).encode()

    def restore(self, content: bytes) -> None:
        """Take up what a predecessor remembered."""
        self._horizontal.restore(json.loads(content)["horizontal"])

    def query(self, name: str, arguments: Manifest) -> Manifest:
        """``explain``: what a look at the autoscaler ``arguments["namespace"]/["name"]`` would come to."""
        if name == "settings":
            return asdict(self._policy)
        if name != "explain":
            raise KeyError(f"inference_autoscaler answers explain and settings, not {name!r}")
        key = Key(AUTOSCALER, str(arguments.get("namespace") or "default"), str(arguments.get("name") or ""))
        return self._horizontal.explain(key, int(arguments.get("now") or self._now))

    def check(self) -> list[str]:
        """The invariants that do not hold."""
        return self._horizontal.check()

    @property
    def _paused(self) -> bool:
        return pause_of(self._store.get(SWITCH)) is not None


def _nobody(namespace: str, metric: Metric) -> int | None:
    """Nobody but the samples knows an external metric."""
    return None
