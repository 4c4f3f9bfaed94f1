"""The core of inference_autoscaler: facts and samples in, sizes out."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol

import orjson

from inference_autoscaler.domain.cluster.pod_index import PodIndex
from inference_autoscaler.domain.cluster.scale import SCALABLE, scale_of
from inference_autoscaler.domain.goals.desk import KINDS as GOAL_KINDS
from inference_autoscaler.domain.goals.desk import GoalDesk
from inference_autoscaler.domain.goals.steering import without_goal
from inference_autoscaler.domain.horizontal.desk import HorizontalDesk
from inference_autoscaler.domain.horizontal.measuring import External
from inference_autoscaler.domain.horizontal.spec import AUTOSCALER
from inference_autoscaler.domain.keda.desk import ScaledObjectDesk
from inference_autoscaler.domain.keda.scaled_object import SCALED_OBJECT
from inference_autoscaler.domain.metrics.pod_use import NODE_METRIC
from inference_autoscaler.domain.metrics.reading import POD, READING, STAND_IN_LABEL, Series, series_of
from inference_autoscaler.domain.metrics.readings import Readings
from inference_autoscaler.domain.policy import AutoscalerPolicy
from inference_autoscaler.domain.rollout.tally import COUNTED
from inference_autoscaler.domain.serving.desk import CONCERNING, InferenceDesk
from inference_autoscaler.domain.serving.graph_children import GRAPH
from inference_autoscaler.domain.serving.graph_desk import GraphDesk
from inference_autoscaler.domain.serving.inference_service import SERVICE
from kube import Decision, Event, Key, Manifest, Object, Outcome, Store
from kube.scheduling_pause import SWITCH, pause_of

_CREDENTIALS = ("Secret", "ServiceAccount", "TriggerAuthentication.keda.sh", "ClusterTriggerAuthentication.keda.sh")
_INTEREST = frozenset(
    (NODE_METRIC, AUTOSCALER, SCALED_OBJECT, READING, POD, GRAPH, "ConfigMap", *_CREDENTIALS, *SCALABLE, *CONCERNING)
)


class Desk(Protocol):
    """Whoever decides one part, and what of it has to be remembered."""

    def decide(self, now: int, in_flight: AbstractSet[Key]) -> list[Decision]:
        """All that should happen now."""

    def deadline(self) -> int | None:
        """When that has to be asked again."""

    def take_changes(self) -> dict[str, Manifest | None]:
        """What has to be remembered anew, by name; None where there is nothing any more."""

    def passes_round(self, since: int | None, now: int) -> bool:
        """Whether between ``since`` and ``now`` there was a round of looks that nobody asked for."""

    def restore(self, told: Mapping[str, Manifest], at: int) -> None:
        """Take up what was remembered at ``at``."""


_NAMES = ("serving", "goals", "keda", "horizontal")
"""Under which each desk's part is remembered."""

_AT = "at"
"""Under which is remembered when that was."""


def concerns(kind: str, metadata: Manifest) -> bool:
    """Whether a new object can matter to what is decided here: of pods only those that a selector can find."""
    return "labels" in metadata if kind == POD else kind in _INTEREST


class AutoscalerCore:
    """How many replicas, and which revision gets what share? (the Core protocol)

    Samples never make anything happen by themselves: sizes are looked at in rounds, and when somebody changes what they
    should be. What windows look back at is remembered, so that a successor looks back as far.
    """

    def __init__(self, policy: AutoscalerPolicy | None = None) -> None:
        self._policy = policy or AutoscalerPolicy()
        self.store = Store()
        self._readings, self._pods = Readings(), PodIndex()
        self._keda = ScaledObjectDesk(self._readings, None if self._policy.decides(AUTOSCALER) else self._pods)
        sources = self._keda.sources
        told = External(sources.value, sources.present_value, sources.is_steady)
        self._horizontal = HorizontalDesk(self._readings, self._pods, told)
        self._serving = InferenceDesk(
            self._policy.knative, self._pods, self._policy.routing, self._policy.images, self._readings
        )
        self._graphs = GraphDesk(self._policy.routing, self._policy.images)
        self._goals = GoalDesk(self._policy, self._readings, self._pods)
        self._now = 0
        self._assumed: set[str] = set()
        self._remembered: int | None = None
        self._is_touched = self._has_decided = False

    def read_from(self, store: Store) -> None:
        """Where objects are looked up."""
        self.store = self._horizontal.store = self._keda.store = self._serving.store = store
        self._graphs.store = self._goals.store = store
        self._horizontal.concerns.store = store

    def fold(self, events: Sequence[Event], now: int) -> None:
        """Take in what one change set changed."""
        self._now = max(now, self._now)
        self._is_touched |= bool(events)
        concerns = self._horizontal.concerns
        for event in events:
            match event.key.kind:
                case "Pod":
                    self._pods.fold(event)
                    concerns.see_pod(event)
                    self._serving.fold_pod(event)
                case kind if kind == NODE_METRIC:
                    self._readings.use.fold(event)
                    if event.old is None:
                        concerns.touch_everybody()
                case "HorizontalPodAutoscaler.autoscaling":
                    self._goals.fold(event)
                    self._horizontal.fold(without_goal(event))
                    self._keda.touch(event.key)
                    self._serving.fold(event)
                    self._graphs.fold(event)
                case "ScaledObject.keda.sh":
                    made = self._keda.autoscaler_of(event.key)
                    self._goals.fold(event)
                    self._keda.fold(without_goal(event))
                    concerns.touch_all((made, self._keda.autoscaler_of(event.key)))
                    self._serving.fold(event)
                case kind if kind == GRAPH:
                    self._graphs.fold(event)
                case kind if kind in SCALABLE or kind in CONCERNING:
                    self._goals.touch(event.key)
                    if kind in SCALABLE:
                        concerns.see_target(event)
                        self._keda.touch(event.key)
                    if kind in CONCERNING:
                        self._serving.fold(event)
                        self._graphs.fold(event)
        loads: dict[Series, None] = {}
        for event in events:  # what a sample is of is there by now, in whatever order they came
            if event.key.kind != READING or STAND_IN_LABEL in event.object.labels:
                continue
            if (series := self._take_sample(event)) is not None:
                loads[series] = None
        for series in loads:  # of several sources that said something at once all are known by now
            self._serving.hear(series, now)
        self._goals.hear(now)

    def _take_sample(self, event: Event) -> Series | None:
        """What it is of, where that is the load of a service."""
        topics = self._readings.fold(event)
        for topic in topics:
            self._horizontal.concerns.touch(topic)
            self._keda.touch(topic)
            self._goals.touch(topic)
        series = namespace, kind, name, metric = series_of(event.object)
        if kind == POD and topics and (pod := self.store.get(Key(POD, namespace, name))) is not None:
            self._horizontal.concerns.see_use(pod)
        elif kind == SERVICE and metric in COUNTED:
            self._serving.count(event)
        elif kind == SERVICE:
            return series
        return None

    def hear(self, service: str, decision: Decision) -> None:
        """This service listens to facts only."""

    def assume(self, decision_id: str, decision: Decision) -> None:
        """Its subject is in flight until its outcome, and left alone as long."""
        self._assumed.add(decision_id)

    def settle(self, outcome: Outcome) -> None:
        """Look again at what was refused just now; what was long ago is in what is remembered."""
        if outcome.decision_id and outcome.decision_id not in self._assumed:
            return
        self._assumed.discard(outcome.decision_id)
        if outcome.subject.kind in GOAL_KINDS:
            self._goals.settle(outcome)
        if outcome.subject.kind == AUTOSCALER:
            self._horizontal.settle(outcome)
        elif outcome.subject.kind == SCALED_OBJECT:
            self._keda.settle(outcome)
        elif outcome.subject.kind == SERVICE:
            self._serving.settle(outcome)
        elif outcome.subject.kind == GRAPH:
            self._graphs.settle(outcome)

    def decide(self, now: int, in_flight: AbstractSet[Key]) -> list[Decision]:
        """All that should happen now; nothing while an operator keeps everything as it is."""
        self._now = now
        if self._paused:
            return []
        found: list[Decision] = []
        for desk in self._deciding:
            self._horizontal.moved = {change.key for decision in found for change in decision.mutations}
            found += desk.decide(now, in_flight)
            if desk is self._serving:
                found += self._graphs.decide(now, in_flight)
        self._has_decided = bool(found)
        return found

    def deadline(self) -> int | None:
        """The next round."""
        if self._paused:
            return None
        return min((time for desk in self._deciding if (time := desk.deadline()) is not None), default=None)

    def remember_parts(self) -> Mapping[str, bytes]:
        """What the windows look back at, as far as it is new, and up to when rounds were made.

        The latter also where nothing else is new: with each decision, and when facts come after a round that the last commit
        does not know of. So a successor makes no round a second time that would come to something else by now.
        """
        desks = [*zip(_NAMES, self._desks, strict=True)]
        changed = {f"{of}/{name}": part for of, desk in desks for name, part in desk.take_changes().items()}
        behind = self._is_touched and any(desk.passes_round(self._remembered, self._now) for desk in self._deciding)
        if not (changed or behind or self._has_decided):
            return {}
        self._remembered, self._is_touched, self._has_decided = self._now, False, False
        return {_AT: b"%d" % self._now, **{name: _written(part) for name, part in changed.items()}}

    def restore_parts(self, parts: Mapping[str, bytes]) -> None:
        """Take up what a predecessor remembered; what an older version wrote in another form is learnt anew."""
        if _AT not in parts:
            return
        self._remembered, told = int(parts[_AT]), {of: dict[str, Manifest]() for of in _NAMES}
        for name, content in parts.items():
            of, slash, own = name.partition("/")
            if slash and of in told:
                told[of][own] = orjson.loads(content)
        for of, desk in zip(_NAMES, self._desks, strict=True):
            desk.restore(told[of], self._remembered)

    def query(self, name: str, arguments: Manifest) -> Manifest:
        """``explain``: what a look at the autoscaler, or service, ``arguments["namespace"]/["name"]`` of ``["kind"]`` would come to."""
        if name == "settings":
            return self._policy.manifest()
        if name != "explain":
            raise KeyError(f"inference_autoscaler answers explain and settings, not {name!r}")
        kind, now = str(arguments.get("kind") or AUTOSCALER), int(arguments.get("now") or self._now)
        key = Key(kind, str(arguments.get("namespace") or "default"), str(arguments.get("name") or ""))
        if self._goals.has(key):
            return self._goals.explain(key, now)
        if not self._policy.decides(kind):
            return {
                "found": True,
                "verdict": "NotDecidedHere",
                "message": "another controller of the cluster decides on it",
            }
        if kind == SERVICE:
            return self._serving.explain(key, now)
        return self._keda.explain(key, now) if kind == SCALED_OBJECT else self._horizontal.explain(key, now)

    def pods_of(self, target: Key) -> list[Object]:
        """The pods of what can be scaled, by name; none where it cannot, or is not there."""
        scale = scale_of(self.store.get(target))
        return [] if scale is None else self._pods.selected(target.namespace, scale.selector)

    def check(self) -> list[str]:
        """The invariants that do not hold."""
        return self._horizontal.check()

    @property
    def _desks(self) -> tuple[Desk, ...]:
        return self._serving, self._goals, self._keda, self._horizontal

    @property
    def _deciding(self) -> list[Desk]:
        """Those on whose objects nobody else decides; that of goals tells those who cannot have theirs."""
        parts: list[tuple[str, Desk]] = [
            (SERVICE, self._serving),
            (SCALED_OBJECT, self._keda),
            (AUTOSCALER, self._horizontal),
        ]
        goals: list[Desk] = [self._goals] if self._policy.acts else []
        return [*goals, *(desk for kind, desk in parts if self._policy.decides(kind))]

    @property
    def _paused(self) -> bool:
        return pause_of(self.store.get(SWITCH)) is not None


def _written(part: Manifest | None) -> bytes:
    return b"" if part is None else orjson.dumps(part, option=orjson.OPT_SORT_KEYS)
