"""All HorizontalPodAutoscalers and ScaledObjects with a goal: looked at when something of them changes, and every two seconds.

The goal takes the place of their metrics, and of the autoscaler that a ScaledObject makes: the whole size is decided here.
A look is as of the tick that it falls in, so that a second one in the same tick comes to the same.
"""

from collections.abc import Hashable, Mapping
from collections.abc import Set as AbstractSet

from inference_autoscaler.domain.agenda import Subscribers, Ticks
from inference_autoscaler.domain.cluster.pod_index import PodIndex
from inference_autoscaler.domain.cluster.scale import Scale, scale_of
from inference_autoscaler.domain.goals.record import Record
from inference_autoscaler.domain.goals.report import PAUSED, SIZED_BY_GOAL, Finding, status_patch
from inference_autoscaler.domain.goals.steering import Measure, Resolved, Steering, has_goal, read, resolve, service_of
from inference_autoscaler.domain.horizontal.spec import AUTOSCALER
from inference_autoscaler.domain.horizontal.verdict import RESCALE
from inference_autoscaler.domain.keda.scaled_object import SCALED_OBJECT
from inference_autoscaler.domain.knative.decider import TICK_MS
from inference_autoscaler.domain.knative.load import Load
from inference_autoscaler.domain.metrics.readings import Readings
from inference_autoscaler.domain.policy import AutoscalerPolicy
from inference_autoscaler.domain.target.aim import Aim, aim_of
from inference_autoscaler.domain.target.goal import GOAL
from inference_autoscaler.domain.target.outlook import outlook
from inference_autoscaler.domain.target.plan import Fleet
from kube import Decision, Event, Key, Manifest, Mutation, Object, Outcome, Store, Verb
from kube.keys import kind_id

KINDS = (AUTOSCALER, SCALED_OBJECT)
_OTHERS = {
    AUTOSCALER: "the cluster's own controller decides on HorizontalPodAutoscalers and knows no goals: put it on a ScaledObject",
    SCALED_OBJECT: "KEDA decides on ScaledObjects and knows no goals: leave them to this service (scaled_objects: true)",
}


class GoalDesk:
    """Decides the sizes of the targets of autoscalers with a goal. One whose target rests costs nothing."""

    def __init__(self, policy: AutoscalerPolicy, readings: Readings, pods: PodIndex) -> None:
        self.store = Store()
        self._policy, self._readings, self._pods = policy, readings, pods
        self._specs: dict[Key, Steering | str] = {}
        self._records: dict[Key, Record] = {}
        self._subscribers = Subscribers()
        self._targets: dict[Key, dict[Key, None]] = {}
        """Who names each target, with a goal or without one."""
        self._named: dict[Key, Key] = {}
        self._ticks = Ticks(TICK_MS)
        self._changed: dict[Key, None] = {}

    def fold(self, event: Event) -> None:
        """Take in that an autoscaler changed."""
        key, item = event.key, event.new
        self._name(key, item)
        if item is None or not has_goal(item):
            self._subscribers.subscribe(key, ())
            for known in (self._specs, self._ticks.due, self._ticks.awake):
                known.pop(key, None)
            if self._records.pop(key, None) is not None:
                self._changed[key] = None
            return
        self._specs[key] = _read(item)
        self._ticks.due[key] = None

    def touch(self, topic: Hashable) -> None:
        """Take in that something changed that they may go by: a target, a sample."""
        self._ticks.due.update(dict.fromkeys(self._subscribers.of(topic)))

    def hear(self, now: int) -> None:
        """Take in the samples of all that are due, as they stand after a change."""
        for key in self._ticks.due:
            item, spec = self.store.get(key), self._specs.get(key)
            resolved = self._resolved(spec) if isinstance(spec, Steering) else None
            if item is not None and isinstance(resolved, Resolved):
                record = self._record(item, now)
                heard = [
                    self._hear(record.came, resolved.came, now),
                    self._hear(record.in_flight, resolved.in_flight, now),
                ]
                if any(heard):
                    self._changed[key] = None

    def settle(self, outcome: Outcome) -> None:
        """What was refused is looked at in the next tick."""
        if not outcome.applied and outcome.subject in self._specs:
            self._ticks.awake[outcome.subject] = None

    def decide(self, now: int, in_flight: AbstractSet[Key]) -> list[Decision]:
        """A look at each that is due."""
        if self._ticks.begin(now):
            for key, record in self._records.items():
                record.rewind(now)
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
        known = ((key, self._records.get(key)) for key in changed)
        return {"/".join(key): None if one is None else one.manifest() for key, one in known}

    def passes_round(self, since: int | None, now: int) -> bool:
        """Never: whoever begins anew looks at all of them as of the present tick."""
        return False

    def restore(self, told: Mapping[str, Manifest], at: int) -> None:
        """Take up what was remembered at ``at``."""
        self._ticks.now = at // TICK_MS
        for name, one in told.items():
            self._records[Key(*name.split("/"))] = Record.of(one)

    def explain(self, key: Key, now: int) -> Manifest:
        """What its goal comes to, what starts, and what has to pass before replicas may go."""
        item, spec = self.store.get(key), self._specs.get(key)
        if item is None or spec is None:
            return {"found": False, "message": f"{key} is not there"}
        condition: Manifest = next(
            (one for one in item.status.get("conditions") or () if one.get("type") == SIZED_BY_GOAL), {}
        )
        answer: Manifest = {"found": True, "verdict": condition.get("reason", "NotLookedAt")}
        answer["message"] = condition.get("message", "it was not looked at yet")
        record, resolved = self._records.get(key), self._resolved(spec) if isinstance(spec, Steering) else ""
        scale = scale_of(self.store.get(spec.target)) if isinstance(spec, Steering) else None
        if record is None or scale is None or not isinstance(resolved, Resolved) or not isinstance(spec, Steering):
            return answer
        aim, fleet = aim_of(item.annotations, resolved.slots), self._fleet(record, scale, now)
        bounds = f"{scale.item.name}: from {spec.minimum} to {spec.maximum} replicas, by {resolved.words}"
        lines = outlook(record.pursuit, aim, fleet, 100, now) if aim is not None else []
        return {**answer, "replicas": scale.wanted, "lines": [bounds, *lines]}

    def has(self, key: Key) -> bool:
        """Whether it is one with a goal."""
        return key in self._specs

    def _fleet(self, record: Record, scale: Scale, now: int) -> Fleet:
        ready, pods = _serving(scale.item), self._pods.selected(scale.item.namespace, scale.selector)
        return Fleet(scale.wanted, ready, record.pursuit.starts.etas(pods, scale.wanted, ready, now))

    def _look(self, key: Key, now: int) -> Decision | None:
        item, spec = self.store.get(key), self._specs.get(key)
        if item is None or spec is None or item.deleting:
            return None
        is_ours = self._policy.decides(key.kind)
        found = self._found(item, spec, now) if is_ours else Finding("False", "NotScaledHere", _OTHERS[key.kind])
        record = self._records.get(key)
        is_awake = found.scale is not None and record is not None and not (found.replicas == 0 and record.is_quiet)
        if is_awake:
            self._ticks.awake[key] = None
        else:
            self._ticks.awake.pop(key, None)
        patch = status_patch(item, found, now, is_ours=is_ours)
        told = (Mutation(Verb.STATUS, item.key, item.uid, patch=patch),) if patch else ()
        dropped = self._unmade(item) if is_ours else ()
        if found.moves and found.scale is not None:
            moved = (found.scale.to(found.replicas), *dropped, *told)
            message = f"New size: {found.replicas}; reason: {found.why}"
            return Decision("ReplicasScaled", item.key, item.uid, RESCALE, message, moved)
        if not (told or dropped):
            return None
        return Decision("ScalingExplained", item.key, item.uid, found.reason, found.message, (*dropped, *told))

    def _found(self, item: Object, spec: Steering | str, now: int) -> Finding:
        """What a look comes to."""
        if isinstance(spec, str):
            return Finding("False", "InvalidGoal", spec)
        resolved, scale = self._resolved(spec), scale_of(self.store.get(spec.target))
        self._subscribe(item.key, spec, resolved)
        if scale is None:
            return Finding("False", "FailedGetScale", f"the target {spec.target} is not there, or cannot be scaled")
        rivals = sorted(other.name for other in self._targets.get(spec.target, {}) if not self._is_own(other, item))
        if rivals:
            words = f"{', '.join(rivals)} names the same target and decides: take one of them away"
            return Finding("False", "AmbiguousTarget", words)
        if isinstance(resolved, str):
            return Finding("False", "NotMeasured", resolved)
        try:
            aim = aim_of(item.annotations, resolved.slots)
        except ValueError as error:
            return Finding("False", "InvalidGoal", str(error))
        assert aim is not None, "who has no goal is not looked at"
        return self._sized(item, spec, resolved, aim, scale, now)

    def _sized(self, item: Object, spec: Steering, resolved: Resolved, aim: Aim, scale: Scale, now: int) -> Finding:
        record = self._record(item, now)
        before = record.learned()
        ready, pods = _serving(scale.item), self._pods.selected(item.namespace, scale.selector)
        record.pursuit.starts.learn(pods)
        record.pursuit.hear(aim, record.came, record.in_flight, record.born, ready)
        record.forget(now)
        if record.learned() != before:
            self._changed[item.key] = None
        told = record.pursuit.standing(aim, resolved.words, now)
        if spec.paused is not None:
            kept = scale.wanted if spec.paused < 0 else spec.paused
            return Finding("False", PAUSED, "it is paused", scale, kept, f"it is paused at {kept}")
        if scale.wanted == 0 and spec.minimum > 0:
            words = "scaling is disabled since the replica count of the target is zero"
            return Finding("False", "ScalingDisabled", words, scale, 0)
        planned = record.pursuit.plan(aim, self._fleet(record, scale, now), 100, now)
        wanted = scale.wanted if planned is None else planned.pods
        replicas = min(max(wanted, spec.minimum), spec.maximum)
        why = planned.why if planned is not None and replicas == planned.pods else "its bounds"
        return Finding(*told, scale, replicas, why, not record.is_quiet)

    def _subscribe(self, key: Key, spec: Steering, resolved: Resolved | str) -> None:
        topics: list[Hashable] = [spec.target]
        if isinstance(resolved, Resolved):
            topics += [one.series for one in (resolved.came, resolved.in_flight)]
        target = self.store.get(spec.target)
        if target is not None and (service := service_of(target)) is not None:
            topics.append(service)
        self._subscribers.subscribe(key, topics)

    def _resolved(self, spec: Steering) -> Resolved | str:
        target = self.store.get(spec.target)
        if target is None:
            return f"{spec.target} is not there"
        try:
            return resolve(spec, target, self.store)
        except ValueError as error:
            return str(error)

    def _hear(self, load: Load, measure: Measure, now: int) -> bool:
        total = self._readings.total(measure.series, measure.selector, now)
        return total is not None and load.hear(total.at, total.value_milli)

    def _unmade(self, item: Object) -> tuple[Mutation, ...]:
        """The autoscaler that a ScaledObject made before it had a goal goes."""
        made = (child for child in self.store.owned_by(item.uid) if child.kind == AUTOSCALER and not child.deleting)
        return tuple(Mutation(Verb.DELETE, child.key, child.uid) for child in made)

    def _is_own(self, other: Key, item: Object) -> bool:
        there = self.store.get(other)
        return other == item.key or there is None or (there.controller or {}).get("uid") == item.uid

    def _name(self, key: Key, item: Object | None) -> None:
        """Keep who names which target; who shares one with it is looked at."""
        old, new = self._named.pop(key, None), _target(item)
        if old is not None:
            del self._targets[old][key]
            self._stir(old)
            if not self._targets[old]:
                del self._targets[old]
        if new is not None:
            self._named[key] = new
            self._targets.setdefault(new, {})[key] = None
            if old != new:
                self._stir(new)

    def _stir(self, target: Key) -> None:
        self._ticks.due.update(dict.fromkeys(key for key in self._targets[target] if key in self._specs))

    def _record(self, item: Object, now: int) -> Record:
        record = self._records.get(item.key)
        if record is None or record.uid != item.uid:
            record = self._records[item.key] = Record.begun(item.uid, now)
            self._changed[item.key] = None
        return record


def _read(item: Object) -> Steering | str:
    try:
        return read(item)
    except (ValueError, TypeError, KeyError) as error:
        return f"{GOAL}: it makes no sense: {error}"


def _target(item: Object | None) -> Key | None:
    reference = (item.spec.get("scaleTargetRef") or {}) if item is not None else {}
    if item is None or not reference.get("name"):
        return None
    kind = kind_id(str(reference.get("apiVersion") or "apps/v1"), str(reference.get("kind") or "Deployment"))
    return Key(kind, item.namespace, str(reference["name"]))


def _serving(target: Object) -> int:
    status = target.status
    return int(status.get("availableReplicas") or status.get("readyReplicas") or 0)
