"""All InferenceServices: each is looked at when something of it changes, and those that are awake every two seconds.

A look is as of the tick that it falls in, so that a second one in the same tick comes to the same.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

import orjson

from inference_autoscaler.domain.agenda import Ticks
from inference_autoscaler.domain.cluster.pod_index import PodIndex
from inference_autoscaler.domain.horizontal.spec import AUTOSCALER
from inference_autoscaler.domain.horizontal.verdict import RESCALE
from inference_autoscaler.domain.images import Images
from inference_autoscaler.domain.knative.configuration import KnativeConfiguration
from inference_autoscaler.domain.knative.decider import TICK_MS
from inference_autoscaler.domain.metrics.reading import Reading as Sample
from inference_autoscaler.domain.metrics.reading import Series, series_of
from inference_autoscaler.domain.metrics.reading import read as read_sample
from inference_autoscaler.domain.metrics.readings import Readings
from inference_autoscaler.domain.rollout.tally import Tally, counter_of
from inference_autoscaler.domain.routing import HTTP_ROUTE, INGRESS, Routing
from inference_autoscaler.domain.serving import serverless, standard
from inference_autoscaler.domain.serving.children import LABEL
from inference_autoscaler.domain.serving.component import PREDICTOR
from inference_autoscaler.domain.serving.course import Course
from inference_autoscaler.domain.serving.explaining import explained
from inference_autoscaler.domain.serving.inference_service import SERVICE, STANDARD, Inference, read
from inference_autoscaler.domain.serving.outcome import Outlook
from inference_autoscaler.domain.serving.pods import resolved
from inference_autoscaler.domain.serving.rollout import Rollout
from inference_autoscaler.domain.serving.routes import keep_route
from inference_autoscaler.domain.serving.runtimes import CLUSTER_RUNTIME, RUNTIME, NoRuntime
from inference_autoscaler.domain.serving.scalers import SCALED_OBJECT
from inference_autoscaler.domain.serving.status import first_condition, status_patch
from inference_autoscaler.domain.serving.surroundings import Surroundings
from kube import Decision, Event, Key, Manifest, Mutation, Object, Outcome, Store, Verb, parse_time

_CHILDREN = ("Deployment.apps", "Service", AUTOSCALER, SCALED_OBJECT, HTTP_ROUTE, INGRESS)
_STATUSES = ("containerStatuses", "initContainerStatuses")
SHARED = frozenset((RUNTIME, CLUSTER_RUNTIME, "Secret", "ServiceAccount"))
"""The kinds that pods of several services are made of."""
CONCERNING = frozenset((SERVICE, *SHARED, *_CHILDREN))
"""The kinds whose changes are to be folded here."""


class InferenceDesk:
    """Makes what InferenceServices consist of, sizes it, and shares the requests among revisions."""

    def __init__(
        self,
        configuration: KnativeConfiguration,
        pods: PodIndex,
        routing: Routing,
        images: Images,
        readings: Readings,
    ) -> None:
        self.store, self._readings = Store(), readings
        self._changed: dict[Key, None] = {}
        self._configuration, self._pods, self._routing, self._images = configuration, pods, routing, images
        self._specs: dict[Key, Inference | str] = {}
        self._resolved: dict[Key, Inference] = {}
        """With the pods that they have in the end, as long as nothing of that changes."""
        self._stale: set[str] = set()
        """Namespaces in which something changed that pods of several services are made of; "" for all of them."""
        self._courses: dict[Key, Course] = {}
        self._ticks = Ticks(TICK_MS)
        self._refused: dict[Key, int | None] = {}
        """The tick in which something was refused last."""

    def fold(self, event: Event) -> None:
        """Take in that an InferenceService, or something that one may be made of, changed."""
        if event.key.kind in SHARED:
            self._stale.add(event.key.namespace)
            return
        if event.key.kind in _CHILDREN:
            owner = event.object.controller or {}
            if owner.get("kind") == "InferenceService":
                self._ticks.due[Key(SERVICE, event.key.namespace, str(owner.get("name")))] = None
            return
        if event.new is None:
            for known in (self._specs, self._resolved, self._ticks.due, self._ticks.awake, self._refused):
                known.pop(event.key, None)
            if self._courses.pop(event.key, None) is not None:
                self._changed[event.key] = None
            return
        old = event.old
        if old is None or old.body is not event.new.body or _marks(old) != _marks(event.new):
            self._specs[event.key] = _read(event.new)
            self._resolved.pop(event.key, None)
            self._ticks.due[event.key] = None
        self._ticks.awake[event.key] = None

    def _refresh(self) -> None:
        """Services in stale namespaces are looked at, and their pods put together anew."""
        for key in self._specs if self._stale else ():
            if "" in self._stale or key.namespace in self._stale:
                self._resolved.pop(key, None)
                self._ticks.due[key] = None
        self._stale.clear()

    def fold_pod(self, event: Event) -> None:
        """Take in that containers of a pod of a service ended or started: its model may have failed to load."""
        pod, old = event.new, event.old
        name = pod.labels.get(LABEL) if pod is not None else None
        if pod is None or name is None:
            return
        if old is None or any(pod.status.get(one) != old.status.get(one) for one in _STATUSES):
            self._ticks.due[Key(SERVICE, event.key.namespace, name)] = None

    def hear(self, series: Series, now: int) -> None:
        """Take in what the request path bears of a service, by all gateways together. One that sleeps is woken by a load."""
        namespace, _, name, metric = series
        key, total = Key(SERVICE, namespace, name), self._readings.total(series, None, now)
        service = self.store.get(key)
        if service is None or total is None or not self._course(service).load(metric).hear(total.at, total.value_milli):
            return
        self._changed[key] = None
        if key in self._ticks.awake or total.value_milli:
            self._ticks.due[key] = self._ticks.awake[key] = None

    def count(self, sample: Event) -> None:
        """Take in what a revision answered by now, as a gateway counted it."""
        item = sample.new
        if item is None:
            return
        namespace, _, name, _ = series_of(item)
        key, found = Key(SERVICE, namespace, name), read_sample(item)
        service = self.store.get(key)
        if service is None or found is None or not self._is_planned(key):
            return
        if _counted(self._course(service), item, found):
            self._changed[key] = self._ticks.due[key] = self._ticks.awake[key] = None

    def settle(self, outcome: Outcome) -> None:
        """Look again at what was refused: at once, and where that is refused too, in the next tick."""
        if outcome.applied:
            self._refused.pop(outcome.subject, None)
            return
        waits = self._refused.get(outcome.subject, -1) == self._ticks.now
        self._refused[outcome.subject] = self._ticks.now
        (self._ticks.awake if waits else self._ticks.due)[outcome.subject] = None

    def decide(self, now: int, in_flight: AbstractSet[Key]) -> list[Decision]:
        """A look at each that is due."""
        self._refresh()
        if self._ticks.begin(now):
            for key, course in self._courses.items():
                course.rewind(now)
                self._changed[key] = None
        at = now // TICK_MS * TICK_MS
        found = (self._look(key, at) for key in self._ticks.take(in_flight))
        return [decision for decision in found if decision is not None]

    def deadline(self) -> int | None:
        """The next look at those that are awake."""
        return self._ticks.deadline()

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
        self._ticks.now = at // TICK_MS
        for name, one in told.items():
            namespace, _, own = name.partition("/")
            self._courses[Key(SERVICE, namespace, own)] = Course.of(one)

    def explain(self, key: Key, now: int) -> Manifest:
        """What a look now would come to; nothing is decided, and nothing remembered."""
        item, spec = self.store.get(key), self._specs.get(key)
        if item is None or spec is None:
            return {"found": False, "message": f"{key} is not there"}
        known = self._courses.get(key) or Course(item.uid, parse_time(item.created))
        course = Course.of(orjson.loads(orjson.dumps(known.manifest())))
        read, found = self._outlook(item, spec, course, now // TICK_MS * TICK_MS)
        if isinstance(read, str):
            return {"found": True, "verdict": found.reason, "message": found.trouble}
        return explained(item, read, found, course, self._around, now)

    @property
    def _around(self) -> Surroundings:
        return Surroundings(self.store, self._pods, self._configuration)

    def _look(self, key: Key, now: int) -> Decision | None:
        item, spec = self.store.get(key), self._specs.get(key)
        if item is None or spec is None or item.deleting:
            return None
        course = self._course(item)
        before = course.decided()
        spec, found = self._outlook(item, spec, course, now)
        if course.decided() != before:
            self._changed[key] = None
        if not found.is_awake:
            self._ticks.awake.pop(key, None)
        patch = status_patch(item, spec, found, self._pods_of(item, found), self._routing, now)
        return _told(item, spec, found, patch)

    def _outlook(
        self, item: Object, spec: Inference | str, course: Course, now: int
    ) -> tuple[Inference | str, Outlook]:
        """What a look comes to, with the pods that the service has in the end."""
        if isinstance(spec, str):
            return spec, Outlook(trouble=spec)
        if spec.stopped:
            children = [
                child for child in self.store.owned_by(item.uid) if child.kind in _CHILDREN and not child.deleting
            ]
            return spec, Outlook([Mutation(Verb.DELETE, child.key, child.uid) for child in children], stopped=True)
        try:
            if item.key not in self._resolved:
                self._resolved[item.key] = resolved(item, spec, self.store, self._images)
            spec = self._resolved[item.key]
            mode = standard if spec.mode == STANDARD else serverless
            found = mode.look(item, spec, course, self._around, now)
            keep_route(found, item, spec, self._routing, self.store)
            return spec, found
        except NoRuntime as error:
            return spec, Outlook(trouble=str(error), reason=error.reason)
        except ValueError as error:
            return spec, Outlook(trouble=str(error))

    def _pods_of(self, item: Object, found: Outlook) -> list[Object]:
        """The pods of its predictor's newest revision."""
        standing = found.standings.get(PREDICTOR)
        labels = {LABEL: item.name, "app": f"isvc.{standing.name}"} if standing is not None else {}
        return self._pods.selected(item.namespace, {"matchLabels": labels})

    def _is_planned(self, key: Key) -> bool:
        spec = self._specs.get(key)
        return isinstance(spec, Inference) and spec.plan is not None

    def _course(self, item: Object) -> Course:
        course = self._courses.get(item.key)
        if course is None or course.uid != item.uid:
            course = self._courses[item.key] = Course(item.uid, parse_time(item.created))
            self._changed[item.key] = None
        return course


def _marks(item: Object) -> tuple[Mapping[str, str], Mapping[str, str]]:
    return item.labels, item.annotations


def _counted(course: Course, item: Object, found: Sample) -> bool:
    """Take in what a revision answered by now. Whether it is news."""
    counter = counter_of(found.series[3], found.labels)
    if counter is None:
        return False
    revision, name = counter
    return course.tallies.setdefault(revision, Tally()).hear(item.name, name, found.value_milli // 1000, item.revision)


def _told(item: Object, spec: Inference | str, found: Outlook, patch: Manifest) -> Decision | None:
    told = [Mutation(Verb.STATUS, item.key, item.uid, patch=patch)] if patch else []
    # Routes come last: a cluster that does not have their kind refuses what follows.
    mutations = (*found.changes, *told, *found.routes)
    if not mutations:
        return None
    if found.made:
        message = f"made anew: {', '.join(found.made)}"
        return Decision("InferenceServiceMade", item.key, item.uid, "ChildrenMade", message, mutations)
    moved = [one for role, one in found.rollouts.items() if one.split != _split_of(item, role)]
    if found.trial is not None and moved:
        message = f"{_shares(moved[0])[1]}; {found.trial.revision}: {found.trial.words}"
        return Decision("TrafficSplit", item.key, item.uid, found.trial.reason, message, mutations)
    if found.sizes:
        message = "; ".join(found.sizes)
        return Decision("ReplicasScaled", item.key, item.uid, RESCALE, message, mutations)
    if found.rollouts and ("components" in patch or found.routes):
        reason, message = _shares((moved or [*found.rollouts.values()])[0])
        return Decision("TrafficSplit", item.key, item.uid, reason, message, mutations)
    _, reason, message = first_condition(item, spec, found)
    return Decision("ServingExplained", item.key, item.uid, reason, message, mutations)


def _split_of(item: Object, role: str) -> dict[str, int]:
    return Rollout.of((item.status.get("components") or {}).get(role) or {}).split


def _shares(rollout: Rollout) -> tuple[str, str]:
    """Which revision gets what, as a reason and a sentence."""
    if not rollout.split:
        return "NoRevisionReady", "no revision is ready yet: nobody gets requests"
    shares = (f"{name} {percent} %" for name, percent in sorted(rollout.split.items()))
    return "RevisionReady" if rollout.created == rollout.ready else "RevisionNotReady", ", ".join(shares)


def _read(item: Object) -> Inference | str:
    try:
        return read(item)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        return f"{error}" if isinstance(error, ValueError) else f"it makes no sense: {type(error).__name__}: {error}"
