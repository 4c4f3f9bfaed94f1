"""The core of inference_autoscaler: facts and samples in, sizes out."""

import json
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict

from inference_autoscaler.domain.cluster.pod_index import PodIndex
from inference_autoscaler.domain.cluster.scale import SCALABLE
from inference_autoscaler.domain.horizontal.desk import HorizontalDesk
from inference_autoscaler.domain.horizontal.spec import AUTOSCALER
from inference_autoscaler.domain.keda.desk import ScaledObjectDesk
from inference_autoscaler.domain.keda.scaled_object import SCALED_OBJECT
from inference_autoscaler.domain.metrics.reading import POD, READING
from inference_autoscaler.domain.metrics.readings import Readings
from inference_autoscaler.domain.policy import AutoscalerPolicy
from kube import Decision, Event, Key, Manifest, Outcome, Store
from kube.scheduling_pause import SWITCH, pause_of

_INTEREST = frozenset((AUTOSCALER, SCALED_OBJECT, READING, POD, "ConfigMap", *SCALABLE))


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
        self._keda = ScaledObjectDesk(self._readings)
        self._horizontal = HorizontalDesk(self._readings, self._pods, self._keda.value, self._keda.present_value)
        self._now = 0

    def read_from(self, store: Store) -> None:
        """Where objects are looked up."""
        self._store = self._horizontal.store = self._keda.store = store

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
                case "ScaledObject.keda.sh":
                    self._keda.fold(event)

    def hear(self, service: str, decision: Decision) -> None:
        """This service listens to facts only."""

    def assume(self, decision_id: str, decision: Decision) -> None:
        """Nothing to note: the subject is in flight until its outcome, and left alone as long."""

    def settle(self, outcome: Outcome) -> None:
        """Look again at what was refused."""
        if outcome.subject.kind == AUTOSCALER:
            self._horizontal.settle(outcome)
        elif outcome.subject.kind == SCALED_OBJECT:
            self._keda.settle(outcome)

    def decide(self, now: int, in_flight: AbstractSet[Key]) -> list[Decision]:
        """All that should happen now; nothing while an operator keeps everything as it is."""
        self._now = now
        if self._paused or not self._policy.horizontal:
            return []
        return [*self._keda.decide(now, in_flight), *self._horizontal.decide(now, in_flight)]

    def deadline(self) -> int | None:
        """The next round."""
        if self._paused or not self._policy.horizontal:
            return None
        return min(
            (time for time in (self._keda.deadline(), self._horizontal.deadline()) if time is not None), default=None
        )

    def remember(self) -> bytes | None:
        """What the windows look back at."""
        if not (self._horizontal.changed or self._keda.changed):
            return None
        self._horizontal.changed = self._keda.changed = False
        content = {"horizontal": self._horizontal.manifest(), "keda": self._keda.manifest()}
        return json.dumps(content, sort_keys=True).encode()

    def restore(self, content: bytes) -> None:
        """Take up what a predecessor remembered."""
        told = json.loads(content)
        self._horizontal.restore(told["horizontal"])
        self._keda.restore(told["keda"])

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
