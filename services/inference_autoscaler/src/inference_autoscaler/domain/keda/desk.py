"""All ScaledObjects: each is polled when it is new or changed, and at each whole multiple of its polling interval."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from inference_autoscaler.domain.cluster.scale import Scale, scale_of
from inference_autoscaler.domain.covering import covers
from inference_autoscaler.domain.horizontal.pod_classes import serving
from inference_autoscaler.domain.horizontal.proposal import NoProposal, Size
from inference_autoscaler.domain.horizontal.spec import AUTOSCALER, VALUE, Metric
from inference_autoscaler.domain.horizontal.status import changed_conditions
from inference_autoscaler.domain.keda.course import Course
from inference_autoscaler.domain.keda.executor import Poll, Step, step
from inference_autoscaler.domain.keda.made_autoscaler import autoscaler_of
from inference_autoscaler.domain.keda.report import conditions, failed
from inference_autoscaler.domain.keda.scaled_object import (
    NAME_LABEL,
    PAUSED,
    PAUSED_REPLICAS,
    SCALED_OBJECT,
    Fallback,
    Scaled,
    Trigger,
    read,
)
from inference_autoscaler.domain.keda.triggers import RESOURCES, TriggerError, measure
from inference_autoscaler.domain.metrics.readings import Readings
from kube import Decision, Event, Key, Manifest, Mutation, Object, Outcome, Store, Verb, parse_time


class ScaledObjectDesk:
    """Makes the autoscalers of ScaledObjects, tells these what the triggers measure, and decides between zero and one."""

    def __init__(self, readings: Readings) -> None:
        self.store = Store()
        self.changed = False
        """Whether anything of what has to be remembered changed."""
        self._readings = readings
        self._specs: dict[Key, Scaled | str] = {}
        self._courses: dict[Key, Course] = {}
        self._due: dict[Key, None] = {}
        self._fresh: dict[Key, None] = {}
        self._next: dict[Key, int] = {}
        self._soonest: int | None = None
        self._seen: int | None = None
        """When decide() was last called; a successor is told by what was remembered."""
        self._has_begun = False

    def fold(self, event: Event) -> None:
        """Take in that a ScaledObject changed."""
        key = event.key
        if event.new is None:
            for known in (self._specs, self._next, self._due, self._fresh):
                known.pop(key, None)
            self.changed |= self._courses.pop(key, None) is not None
            return
        old = event.old
        if old is None or old.body is not event.new.body or old.annotations != event.new.annotations:
            self._specs[key] = _read(event.new)
        self._fresh[key] = None

    def settle(self, outcome: Outcome) -> None:
        """Poll again what was refused."""
        if not outcome.applied:
            self._due[outcome.subject] = None

    def decide(self, now: int, in_flight: AbstractSet[Key]) -> list[Decision]:
        """A poll of each that is due."""
        if not self._has_begun:
            self._begin(now if self._seen is None else self._seen, now)
        self._due.update(dict.fromkeys(key for key in self._fresh if self._is_news(key)))
        self._fresh = {}
        times: dict[Key, int] = {}
        if self._soonest is not None and self._soonest <= now:
            times = {key: self._start(key, now) for key, due in self._next.items() if due <= now}
        times |= dict.fromkeys(self._due, now)
        self._seen = now
        if not times:
            return []
        self._due = {key: None for key in times if key in in_flight}
        self._schedule(times, now)
        found = (self._poll(key, times[key]) for key in sorted(times) if key not in in_flight)
        return [decision for decision in found if decision is not None]

    def _is_news(self, key: Key) -> bool:
        """Whether the ScaledObject is another, or says another thing, than when it was polled last."""
        item, course = self.store.get(key), self._courses.get(key)
        return item is not None and (course is None or course.uid != item.uid or course.version != _version(item))

    def passes_round(self, since: int | None, now: int) -> bool:
        """Whether one of them is to be polled that was last polled before ``since``."""
        return since is not None and any(self._start(key, now) > since for key in self._specs)

    def _begin(self, since: int, now: int) -> None:
        """What was active at ``since`` was so at every poll up to the last one before this."""
        self._has_begun = True
        self._schedule(self._specs, since)
        for key, course in self._courses.items():
            start = self._start(key, now)
            course.resume(start - self._interval(key) if start > since else start)

    def _start(self, key: Key, now: int) -> int:
        """When the poll was, or is, that is the last one by ``now``."""
        return now // self._interval(key) * self._interval(key)

    def deadline(self) -> int | None:
        """The next poll."""
        return self._soonest

    def value(self, namespace: str, metric: Metric, size: Size, now: int) -> int | None:
        """What the autoscaler of a ScaledObject is told of its ``metric``, in thousandths; None where it is of no ScaledObject.

        Where the source says nothing that is one more failure of it. Raises NoProposal while there is nothing to fall back on.
        """
        found = self._named(namespace, metric)
        if found is None:
            return None
        key, _, trigger = found
        try:
            measure(trigger, namespace, key.name, self._readings, now)
            self._count(key, trigger, failed=False)
        except TriggerError:
            self._count(key, trigger, failed=True)
        return self.present_value(namespace, metric, size, now)

    def present_value(self, namespace: str, metric: Metric, size: Size, now: int) -> int | None:
        """The same, and nothing is counted: for whoever only asks."""
        found = self._named(namespace, metric)
        if found is None:
            return None
        key, spec, trigger = found
        try:
            return measure(trigger, namespace, key.name, self._readings, now).value_milli
        except TriggerError as error:
            if spec.fallback is None or not self._falls_back(key, spec, trigger):
                raise NoProposal(metric, str(error)) from None
            return _fallback_milli(metric, spec.fallback, size)

    def manifest(self) -> Manifest:
        """What has to be remembered."""
        return {f"{key.namespace}/{key.name}": course.manifest() for key, course in sorted(self._courses.items())}

    def restore(self, told: Mapping[str, Manifest], at: int) -> None:
        """Take up what was remembered at ``at``."""
        self._seen = at
        for name, one in told.items():
            namespace, _, own = name.partition("/")
            self._courses[Key(SCALED_OBJECT, namespace, own)] = Course.of(one)

    def _named(self, namespace: str, metric: Metric) -> tuple[Key, Scaled, Trigger] | None:
        """The ScaledObject whose autoscaler has the metric, and the trigger that it is of."""
        labels = None if metric.selector is None else metric.selector.get("matchLabels")
        if not labels or NAME_LABEL not in labels:
            return None
        key = Key(SCALED_OBJECT, namespace, str(labels[NAME_LABEL]))
        spec = self._specs.get(key)
        if not isinstance(spec, Scaled):
            return None
        trigger = next((one for one in spec.triggers if one.metric == metric.name), None)
        return None if trigger is None else (key, spec, trigger)

    def _interval(self, key: Key) -> int:
        spec = self._specs.get(key)
        return spec.polling_ms if isinstance(spec, Scaled) and spec.polling_ms > 0 else 30_000

    def _schedule(self, keys: Iterable[Key], now: int) -> None:
        """The next poll of each is at the next whole multiple of its interval."""
        for key in keys:
            interval = self._interval(key)
            self._next[key] = (now // interval + 1) * interval
        self._soonest = min(self._next.values(), default=None)

    def _poll(self, key: Key, now: int) -> Decision | None:
        item, spec = self.store.get(key), self._specs.get(key)
        if item is None or spec is None:
            return None
        course = self._course(item)
        if isinstance(spec, str):
            return _told(item, failed(spec), (), None, now)
        scale = scale_of(self.store.get(spec.target))
        if scale is None:
            return _told(item, failed(f"the target {spec.target} is not there, or cannot be scaled"), (), None, now)
        poll, error, falls_back = self._measured(key, spec, now)
        self.changed |= course.polled(poll.active, now)
        found = step(spec, scale.wanted, poll, course.last_active, parse_time(item.created), now)
        made = self._made(item, spec)
        return _told(item, conditions(spec, poll, error, falls_back), made, (scale, found), now)

    def _measured(self, key: Key, spec: Scaled, now: int) -> tuple[Poll, str, bool]:
        """What the triggers say together, the first failure in words, and whether one of them is on fallback."""
        active, errors, falls_back = False, list[str](), False
        for trigger in spec.triggers:
            if trigger.type in RESOURCES:
                continue
            try:
                active |= measure(trigger, key.namespace, key.name, self._readings, now).active
                self._count(key, trigger, failed=False)
            except TriggerError as error:
                self._count(key, trigger, failed=True)
                errors.append(str(error))
                falls_back |= self._falls_back(key, spec, trigger)
        only_resources = all(trigger.type in RESOURCES for trigger in spec.triggers)
        poll = Poll(active or falls_back or only_resources, bool(errors))
        return poll, errors[0] if errors else "", falls_back

    def _count(self, key: Key, trigger: Trigger, *, failed: bool) -> None:
        course, spec = self._courses.get(key), self._specs.get(key)
        most = spec.fallback.threshold + 1 if isinstance(spec, Scaled) and spec.fallback else 1
        if course is not None:
            self.changed |= course.count(trigger.metric, failed, most)

    def _falls_back(self, key: Key, spec: Scaled, trigger: Trigger) -> bool:
        course = self._courses.get(key)
        failures = 0 if course is None else course.failures.get(trigger.metric, 0)
        return spec.fallback is not None and failures > spec.fallback.threshold

    def _course(self, item: Object) -> Course:
        course = self._courses.get(item.key)
        if course is None or course.uid != item.uid:
            course = self._courses[item.key] = Course(item.uid)
        if course.version != _version(item):
            course.version, self.changed = _version(item), True
        return course

    def _made(self, item: Object, spec: Scaled) -> tuple[Mutation, ...]:
        """What has to happen so that the autoscaler is as it should be."""
        wanted = autoscaler_of(item, spec)
        key = Key(AUTOSCALER, item.namespace, spec.autoscaler)
        there = self.store.get(key)
        if there is None:
            return (Mutation(Verb.CREATE, key, manifest=wanted),)
        if (there.controller or {}).get("uid") != item.uid or covers(there.spec, wanted["spec"]):
            return ()
        return (Mutation(Verb.PATCH, key, there.uid, patch={"spec": wanted["spec"]}),)


def _told(
    item: Object, told: list[Manifest], made: tuple[Mutation, ...], moved: tuple[Scale, Step] | None, now: int
) -> Decision | None:
    changed = changed_conditions(item.status, told, now)
    patch = {"conditions": changed} if changed else {}
    mutations = (*made, *([Mutation(Verb.STATUS, item.key, item.uid, patch=patch)] if patch else ()))
    if moved is not None and moved[1].why and moved[1].replicas != moved[0].wanted:
        scale, found = moved
        message = f"New size: {found.replicas}; reason: {found.why}"
        return Decision(
            "ReplicasScaled", item.key, item.uid, "KEDAScaleTarget", message, (scale.to(found.replicas), *mutations)
        )
    if not mutations:
        return None
    first = next((one for one in told if one["status"] != "True"), told[0]) if told[0]["status"] == "True" else told[0]
    return Decision("ScalingExplained", item.key, item.uid, first["reason"], first["message"], mutations)


def _fallback_milli(metric: Metric, fallback: Fallback, size: Size) -> int:
    """The value by which the autoscaler comes to the replicas of ``fallback``. Raises NoProposal where there is none."""
    replicas = {
        "currentReplicas": size.replicas,
        "currentReplicasIfHigher": max(size.replicas, fallback.replicas),
        "currentReplicasIfLower": min(size.replicas, fallback.replicas),
    }.get(fallback.behavior, fallback.replicas)
    total = metric.target.amount * replicas
    if metric.target.kind != VALUE:
        return total
    ready = serving(size.pods)
    if ready == 0:
        raise NoProposal(metric, "it is on fallback, and no pod is ready to share the value among")
    return total // ready


def _read(item: Object) -> Scaled | str:
    try:
        return read(item)
    except (ValueError, TypeError, KeyError) as error:
        return f"it makes no sense: {type(error).__name__}: {error}"


def _version(item: Object) -> str:
    """What differs where the object asks for something else: a pause stands in its annotations, and is no new generation."""
    pause = (item.annotations.get(name, "") for name in (PAUSED, PAUSED_REPLICAS))
    return "/".join([str(item.metadata.get("generation", 1)), *pause])
