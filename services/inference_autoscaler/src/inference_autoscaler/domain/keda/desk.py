"""All ScaledObjects: each is polled when it is new or changed, and at each whole multiple of its polling interval."""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from inference_autoscaler.domain.agenda import OWED, Agenda, Owed, Subscribers
from inference_autoscaler.domain.cluster.pod_index import PodIndex
from inference_autoscaler.domain.cluster.scale import Scale, scale_of
from inference_autoscaler.domain.covering import covers
from inference_autoscaler.domain.horizontal.pod_classes import Roster
from inference_autoscaler.domain.horizontal.proposal import Size
from inference_autoscaler.domain.horizontal.spec import AUTOSCALER
from inference_autoscaler.domain.horizontal.status import changed_conditions
from inference_autoscaler.domain.keda.course import Course
from inference_autoscaler.domain.keda.executor import Step, step, waits
from inference_autoscaler.domain.keda.explaining import explained
from inference_autoscaler.domain.keda.made_autoscaler import autoscaler_of
from inference_autoscaler.domain.keda.report import conditions, failed
from inference_autoscaler.domain.keda.scaled_object import (
    NAME_LABEL,
    PAUSED,
    PAUSED_REPLICAS,
    SCALED_OBJECT,
    Scaled,
    read,
)
from inference_autoscaler.domain.keda.sources import Sources
from inference_autoscaler.domain.keda.stand_ins import stand_ins
from inference_autoscaler.domain.metrics.readings import Readings, topic_of
from kube import Decision, Event, Key, Manifest, Mutation, Object, Outcome, Store, Verb, parse_time


class ScaledObjectDesk:
    """Makes the autoscalers of ScaledObjects, tells these what the triggers measure, and decides between zero and one.

    One that is at rest is not polled until a fact comes that concerns it: a poll would come to what the one before came to.
    """

    def __init__(self, readings: Readings, pods: PodIndex | None = None) -> None:
        """With ``pods`` others decide on the autoscalers that are made here, and are told what no sample says (`stand_ins`)."""
        self.store, self._pods = Store(), pods
        self._specs: dict[Key, Scaled | str] = {}
        self._courses: dict[Key, Course] = {}
        self.sources = Sources(readings, self._specs, self._courses)
        self._agenda, self._owed, self._subscribers = Agenda(), Owed(), Subscribers()
        self._intervals = Counter[int]()
        """How many of them are polled how often."""
        self._fresh: dict[Key, None] = {}
        self._touched: dict[Key, None] = {}
        self._changed: dict[Key, None] = {}
        self._seen: int | None = None
        """When decide() was last called; a successor is told by what was remembered."""
        self._has_begun = False

    def fold(self, event: Event) -> None:
        """Take in that a ScaledObject changed."""
        key, old, new = event.key, event.old, event.new
        if new is None:
            self._forget(key)
            return
        if old is None or old.body is not new.body or old.annotations != new.annotations:
            if key in self._specs:
                self._intervals[self._interval(key)] -= 1
            spec = self._specs[key] = _read(new)
            self._intervals[self._interval(key)] += 1
            self._subscribers.subscribe(key, () if isinstance(spec, str) else _topics(key, spec))
        self._fresh[key] = self._touched[key] = None

    def _forget(self, key: Key) -> None:
        if key in self._specs:
            self._intervals[self._interval(key)] -= 1
        for known in (self._specs, self._touched, self._fresh):
            known.pop(key, None)
        self._agenda.drop(key)
        self._owed.drop(key)
        self._subscribers.subscribe(key, ())
        if self._courses.pop(key, None) is not None:
            self._changed[key] = None

    def touch(self, topic: Hashable) -> None:
        """Take in that something changed that they may go by: a target, an autoscaler, a sample."""
        self._touched.update(dict.fromkeys(self._subscribers.of(topic)))

    def autoscaler_of(self, key: Key) -> Key | None:
        """What the ScaledObject ``key`` makes."""
        spec = self._specs.get(key)
        return Key(AUTOSCALER, key.namespace, spec.autoscaler) if isinstance(spec, Scaled) else None

    def settle(self, outcome: Outcome) -> None:
        """What was refused is owed another poll."""
        if not outcome.applied and outcome.subject in self._specs:
            self._owed.refuse(outcome.subject)

    def decide(self, now: int, in_flight: AbstractSet[Key]) -> list[Decision]:
        """A poll of each that is due."""
        since = self._begin(now)
        due = {key: now for key in self._fresh if self._is_news(key)}
        due |= dict.fromkeys(self._owed.due(in_flight), now)
        times = {key: self._start(key, now) for key in self._agenda.take(now)} | due
        for key in self._touched:
            if key not in times:
                self._agenda.put(key, self._start(key, now) + self._interval(key))
        self._fresh, self._touched, self._seen = {}, {}, now
        found = (self._turn(key, times[key], since, in_flight) for key in sorted(times))
        return [decision for decision in found if decision is not None]

    def _begin(self, now: int) -> int:
        """When decide() was called last. Whoever begins polls all of them at the next time after that.

        So does one whose time was set back.
        """
        since = now if self._seen is None else min(self._seen, now)
        if self._seen is not None and now < self._seen:
            for key, course in self._courses.items():
                course.rewind(now)
                self._changed[key] = None
            self._has_begun = False
        if not self._has_begun:
            self._has_begun = True
            for key in self._specs:
                self._agenda.put(key, self._start(key, since) + self._interval(key))
        return since

    def _turn(self, key: Key, now: int, since: int, in_flight: AbstractSet[Key]) -> Decision | None:
        """A poll, or, while a decision is on its way, the promise of one; and when the next poll is due."""
        item = self.store.get(key)
        if item is None or key not in self._specs:
            return None
        if key in in_flight:
            self._owed.put_off(key)
            return None
        self._owed.drop(key)
        course, start = self._course(item), self._start(key, now)
        course.resume(start if start <= since else start - self._interval(key))
        decision, rests = self._poll(item, course, now)
        if rests:
            self._agenda.drop(key)
        else:
            self._agenda.put(key, start + self._interval(key))
        return decision

    def _is_news(self, key: Key) -> bool:
        """Whether the ScaledObject is another, or says another thing, than when it was polled last."""
        item, course = self.store.get(key), self._courses.get(key)
        return item is not None and (course is None or course.uid != item.uid or course.version != _version(item))

    def passes_round(self, since: int | None, now: int) -> bool:
        """Whether one of them is to be polled that was last polled before ``since``."""
        return since is not None and any(now // one > since // one for one, count in self._intervals.items() if count)

    def _start(self, key: Key, now: int) -> int:
        """When the poll was, or is, that is the last one by ``now``."""
        return now // self._interval(key) * self._interval(key)

    def deadline(self) -> int | None:
        """The next poll that can come to another thing; at once, where it is written down that somebody is owed one."""
        return self._seen if self._owed.at_once else self._agenda.next()

    def take_changes(self) -> dict[str, Manifest | None]:
        """What has to be remembered anew."""
        for key in self.sources.counted:
            self._agenda.put(key, self._start(key, self._seen or 0) + self._interval(key))
        changed = self._changed | self.sources.counted
        self._changed, self.sources.counted = {}, {}
        known = ((key, self._courses.get(key)) for key in changed)
        parts = {f"{key.namespace}/{key.name}": None if one is None else one.manifest() for key, one in known}
        return {**parts, **self._owed.take_changes()}

    def restore(self, told: Mapping[str, Manifest], at: int) -> None:
        """Take up what was remembered at ``at``."""
        self._seen = at
        self._owed.restore(told.get(OWED))
        for name, one in told.items():
            namespace, slash, own = name.partition("/")
            if slash:
                self._courses[Key(SCALED_OBJECT, namespace, own)] = Course.of(one)

    def explain(self, key: Key, now: int) -> Manifest:
        """What its triggers say, and what becomes of its target."""
        item, spec = self.store.get(key), self._specs.get(key)
        if item is None or not isinstance(spec, Scaled):
            return {"found": item is not None, "message": spec or f"{key} is not there"}
        scale = scale_of(self.store.get(spec.target))
        if scale is None:
            return {"found": True, "message": f"the target {spec.target} is not there, or cannot be scaled"}
        course = self._courses.get(key) or Course(item.uid)
        lines = [*explained(key, spec, course, self.sources, scale.wanted, now)]
        return {"found": True, "verdict": "Active" if course.is_active else "NotActive", "lines": lines}

    def _interval(self, key: Key) -> int:
        spec = self._specs.get(key)
        return spec.polling_ms if isinstance(spec, Scaled) and spec.polling_ms > 0 else 30_000

    def _poll(self, item: Object, course: Course, now: int) -> tuple[Decision | None, bool]:
        """What a poll comes to, and whether the next ones come to the same as long as no fact that concerns it comes."""
        spec = self._specs[item.key]
        if isinstance(spec, str):
            return _told(item, failed(spec), (), None, now), True
        scale = scale_of(self.store.get(spec.target))
        if scale is None:
            words = f"the target {spec.target} is not there, or cannot be scaled"
            return _told(item, failed(words), (), None, now), True
        poll, error, falls_back = self.sources.poll(item.key, spec, now)
        if course.polled(poll.active, now):
            self._changed[item.key] = None
        found = step(spec, scale.wanted, poll, course.last_active, parse_time(item.created), now)
        made = (*self._made(item, spec), *self._told_to_others(item, spec, scale, now))
        rests = not waits(spec, scale.wanted, poll) and all(
            self.sources.rests(item.key, spec, one) for one in spec.triggers
        )
        return _told(item, conditions(spec, poll, error, falls_back), made, (scale, found), now), rests

    def _course(self, item: Object) -> Course:
        course = self._courses.get(item.key)
        if course is None or course.uid != item.uid:
            course = self._courses[item.key] = Course(item.uid)
        if course.version != _version(item):
            course.version = _version(item)
            self._changed[item.key] = None
        return course

    def _told_to_others(self, item: Object, spec: Scaled, scale: Scale, now: int) -> tuple[Mutation, ...]:
        if self._pods is None:
            return ()
        size = Size(scale.wanted, Roster(self._pods.selected(item.namespace, scale.selector)))
        made = self.store.get(Key(AUTOSCALER, item.namespace, spec.autoscaler))
        return stand_ins(item, made, self.sources, size, self.store, now)

    def _made(self, item: Object, spec: Scaled) -> tuple[Mutation, ...]:
        """What has to happen so that the autoscaler is as it should be: there, and gone while the ScaledObject is paused."""
        wanted = autoscaler_of(item, spec)
        key = Key(AUTOSCALER, item.namespace, spec.autoscaler)
        there = self.store.get(key)
        if spec.paused is not None:  # it would move what is to be kept
            is_own = there is not None and (there.controller or {}).get("uid") == item.uid and not there.deleting
            return (Mutation(Verb.DELETE, key, there.uid),) if there is not None and is_own else ()
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


def _topics(key: Key, spec: Scaled) -> Iterator[Hashable]:
    """What facts its polls depend on: its target, the autoscaler that it makes, and samples (`Readings.fold`)."""
    yield spec.target
    yield Key(AUTOSCALER, key.namespace, spec.autoscaler)
    for trigger in spec.triggers:
        yield topic_of((key.namespace, "", "", trigger.metric), {"matchLabels": {NAME_LABEL: key.name}})


def _read(item: Object) -> Scaled | str:
    try:
        return read(item)
    except (ValueError, TypeError, KeyError) as error:
        return f"it makes no sense: {type(error).__name__}: {error}"


def _version(item: Object) -> str:
    """What differs where the object asks for something else: a pause stands in its annotations, and is no new generation."""
    pause = (item.annotations.get(name, "") for name in (PAUSED, PAUSED_REPLICAS))
    return "/".join([str(item.metadata.get("generation", 1)), *pause])
