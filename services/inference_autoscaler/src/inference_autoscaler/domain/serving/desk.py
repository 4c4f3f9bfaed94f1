"""All InferenceServices: each is looked at when something of it changes, and those that are awake every two seconds.

A look is as of the tick that it falls in, so that a second one in the same tick comes to the same.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from inference_autoscaler.domain.cluster.pod_index import PodIndex
from inference_autoscaler.domain.horizontal.status import changed_conditions
from inference_autoscaler.domain.horizontal.verdict import RESCALE
from inference_autoscaler.domain.knative.configuration import KnativeConfiguration
from inference_autoscaler.domain.knative.decider import TICK_MS
from inference_autoscaler.domain.metrics.reading import Reading as Sample
from inference_autoscaler.domain.metrics.reading import read as read_sample
from inference_autoscaler.domain.metrics.reading import series_of, stamp
from inference_autoscaler.domain.rollout.tally import COUNTED, Tally, counter_of
from inference_autoscaler.domain.serving import serverless, standard
from inference_autoscaler.domain.serving.course import Course
from inference_autoscaler.domain.serving.inference_service import SERVICE, STANDARD, Inference, read, resolved
from inference_autoscaler.domain.serving.outcome import Outlook
from inference_autoscaler.domain.serving.rollout import Rollout
from inference_autoscaler.domain.serving.runtimes import CLUSTER_RUNTIME, RUNTIME, NoRuntime
from inference_autoscaler.domain.serving.serverless import Surroundings
from kube import Decision, Event, Key, Manifest, Mutation, Object, Outcome, Store, Verb, merge, parse_time

_CHILDREN = ("Deployment.apps", "Service", "HorizontalPodAutoscaler.autoscaling")
CONCERNING = frozenset((SERVICE, RUNTIME, CLUSTER_RUNTIME, *_CHILDREN))
"""The kinds whose changes are to be folded here."""


class InferenceDesk:
    """Makes what InferenceServices consist of, sizes it, and shares the requests among revisions."""

    def __init__(self, configuration: KnativeConfiguration, pods: PodIndex) -> None:
        self.store = Store()
        self._changed: dict[Key, None] = {}
        self._configuration, self._pods = configuration, pods
        self._specs: dict[Key, Inference | str] = {}
        self._courses: dict[Key, Course] = {}
        self._due: dict[Key, None] = {}
        self._awake: dict[Key, None] = {}
        self._tick: int | None = None

    def fold(self, event: Event) -> None:
        """Take in that an InferenceService, or something that one may be made of, changed."""
        if event.key.kind in (RUNTIME, CLUSTER_RUNTIME):
            self._due.update(dict.fromkeys(self._specs))
            return
        if event.key.kind in _CHILDREN:
            owner = event.object.controller or {}
            if owner.get("kind") == "InferenceService":
                self._due[Key(SERVICE, event.key.namespace, str(owner.get("name")))] = None
            return
        if event.new is None:
            for known in (self._specs, self._due, self._awake):
                known.pop(event.key, None)
            if self._courses.pop(event.key, None) is not None:
                self._changed[event.key] = None
            return
        old = event.old
        if old is None or old.body is not event.new.body or old.annotations != event.new.annotations:
            self._specs[event.key] = _read(event.new)
            self._due[event.key] = None
        self._awake[event.key] = None

    def hear(self, sample: Event, now: int) -> None:
        """Take in what the request path saw of a service, and said at ``now``. One that sleeps is woken by a load.

        A sample of times to come is one of now: else nothing would be heard until they have come.
        """
        item = sample.new
        if item is None:
            return
        namespace, _, name, metric = series_of(item)
        key, at, found = Key(SERVICE, namespace, name), stamp(item), read_sample(item)
        service = self.store.get(key)
        if service is None or at is None:
            return
        course, at = self._course(service), min(at, now)
        if metric in COUNTED:
            if found is not None and self._is_planned(key) and _counted(course, item, found):
                self._changed[key] = self._due[key] = self._awake[key] = None
            return
        if course.load(metric).add(at, None if found is None else found.value_milli):
            self._changed[key] = None
            if key in self._awake or (found is not None and found.value_milli):
                self._due[key] = self._awake[key] = None

    def settle(self, outcome: Outcome) -> None:
        """Look again at what was refused."""
        if not outcome.applied:
            self._due[outcome.subject] = None

    def decide(self, now: int, in_flight: AbstractSet[Key]) -> list[Decision]:
        """A look at each that is due."""
        tick = now // TICK_MS
        if self._tick is not None and tick < self._tick:
            for key, course in self._courses.items():
                course.rewind(now)
                self._changed[key] = None
        if self._tick is not None and tick > self._tick:
            self._due.update(self._awake)
        self._tick = tick
        if not self._due:
            return []
        due, self._due = sorted(self._due), {key: None for key in self._due if key in in_flight}
        found = (self._look(key, tick * TICK_MS) for key in due if key not in in_flight)
        return [decision for decision in found if decision is not None]

    def deadline(self) -> int | None:
        """The next look at those that are awake."""
        return None if self._tick is None or not self._awake else (self._tick + 1) * TICK_MS

    def take_changes(self) -> dict[str, Manifest | None]:
        """What has to be remembered anew."""
        changed, self._changed = self._changed, {}
        known = ((key, self._courses.get(key)) for key in changed)
        return {f"{key.namespace}/{key.name}": None if one is None else one.manifest() for key, one in known}

    def passes_round(self, since: int | None, now: int) -> bool:
        """Never: whoever begins anew looks at all of them as of the present tick."""
        return False

    def restore(self, told: Mapping[str, Manifest], at: int) -> None:
        """Take up what was remembered at ``at``."""
        self._tick = at // TICK_MS
        for name, one in told.items():
            namespace, _, own = name.partition("/")
            self._courses[Key(SERVICE, namespace, own)] = Course.of(one)

    def _look(self, key: Key, now: int) -> Decision | None:
        item, spec = self.store.get(key), self._specs.get(key)
        if item is None or spec is None or item.deleting:
            return None
        course = self._course(item)
        before = course.decided()
        found = self._outlook(item, spec, course, now)
        if course.decided() != before:
            self._changed[key] = None
        if not found.is_awake:
            self._awake.pop(key, None)
        return _told(item, spec, found, now)

    def _outlook(self, item: Object, spec: Inference | str, course: Course, now: int) -> Outlook:
        if isinstance(spec, str):
            return Outlook(trouble=spec)
        if spec.stopped:
            children = [
                child for child in self.store.owned_by(item.uid) if child.kind in _CHILDREN and not child.deleting
            ]
            return Outlook([Mutation(Verb.DELETE, child.key, child.uid) for child in children], stopped=True)
        try:
            spec = resolved(item, spec, self.store)
            if spec.mode == STANDARD:
                return standard.look(item, spec, self.store)
            around = Surroundings(self.store, self._pods, self._configuration)
            return serverless.look(item, spec, course, around, now)
        except NoRuntime as error:
            return Outlook(trouble=str(error), reason=error.reason)
        except ValueError as error:
            return Outlook(trouble=str(error))

    def _is_planned(self, key: Key) -> bool:
        spec = self._specs.get(key)
        return isinstance(spec, Inference) and spec.plan is not None

    def _course(self, item: Object) -> Course:
        course = self._courses.get(item.key)
        if course is None or course.uid != item.uid:
            course = self._courses[item.key] = Course(item.uid, parse_time(item.created))
            self._changed[item.key] = None
        return course


def _counted(course: Course, item: Object, found: Sample) -> bool:
    """Take in what a revision answered by now. Whether it is news."""
    counter = counter_of(found.series[3], found.labels)
    if counter is None:
        return False
    revision, name = counter
    return course.tallies.setdefault(revision, Tally()).hear(item.name, name, found.value_milli // 1000)


def _told(item: Object, spec: Inference | str, found: Outlook, now: int) -> Decision | None:
    patch = _status(item, spec, found, now)
    mutations = (*found.changes, *([Mutation(Verb.STATUS, item.key, item.uid, patch=patch)] if patch else ()))
    if not mutations:
        return None
    if found.made:
        message = f"made anew: {', '.join(found.made)}"
        return Decision("InferenceServiceMade", item.key, item.uid, "ChildrenMade", message, mutations)
    if found.trial is not None and "components" in patch and found.rollout is not None:
        message = f"{_shares(found.rollout)[1]}; {found.trial.revision}: {found.trial.words}"
        return Decision("TrafficSplit", item.key, item.uid, found.trial.reason, message, mutations)
    if found.sizes:
        message = "; ".join(found.sizes)
        return Decision("ReplicasScaled", item.key, item.uid, RESCALE, message, mutations)
    if found.rollout is not None and "components" in patch:
        reason, message = _shares(found.rollout)
        return Decision("TrafficSplit", item.key, item.uid, reason, message, mutations)
    condition = found.conditions()[0]
    return Decision("ServingExplained", item.key, item.uid, condition["reason"], condition["message"], mutations)


def _status(item: Object, spec: Inference | str, found: Outlook, now: int) -> Manifest:
    """What of the status is to be changed; empty where nothing is."""
    parts: Manifest = {"observedGeneration": item.metadata.get("generation", 1)}
    if isinstance(spec, Inference):
        parts["deploymentMode"] = spec.mode
        if spec.predictor.model is not None:
            parts["modelStatus"] = found.model_status()
    if found.rollout is not None:
        parts["components"] = {"predictor": found.rollout.manifest(found.rollout.created)}
    patch = {name: value for name, value in parts.items() if merge(item.status, {name: value}) != item.status}
    conditions = changed_conditions(item.status, found.conditions(), now)
    return {**patch, **({"conditions": conditions} if conditions else {})}


def _shares(rollout: Rollout) -> tuple[str, str]:
    """Which revision gets what, as a reason and a sentence."""
    if not rollout.split:
        return "NoRevisionReady", "no revision is ready yet: nobody gets requests"
    shares = (f"{name} {percent} %" for name, percent in sorted(rollout.split.items()))
    return "RevisionReady" if rollout.created == rollout.ready else "RevisionNotReady", ", ".join(shares)


def _read(item: Object) -> Inference | str:
    try:
        return read(item)
    except (ValueError, TypeError, KeyError) as error:
        return f"{error}" if isinstance(error, ValueError) else f"it makes no sense: {type(error).__name__}: {error}"
