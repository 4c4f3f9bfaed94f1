"""All HorizontalPodAutoscalers: each is looked at when it is new or changed, and at each whole multiple of 15 seconds."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from inference_autoscaler.domain.agenda import OWED, Agenda, Owed
from inference_autoscaler.domain.cluster.pod_index import PodIndex
from inference_autoscaler.domain.cluster.scale import Scale, scale_of
from inference_autoscaler.domain.horizontal.concerns import Concerns
from inference_autoscaler.domain.horizontal.explaining import explained
from inference_autoscaler.domain.horizontal.history import History
from inference_autoscaler.domain.horizontal.measuring import External, Value, measure_with
from inference_autoscaler.domain.horizontal.pod_classes import CPU
from inference_autoscaler.domain.horizontal.proposal import Size
from inference_autoscaler.domain.horizontal.scaling_rules import DOWN_WINDOW_MS
from inference_autoscaler.domain.horizontal.spec import AUTOSCALER, EXTERNAL, Horizontal, read
from inference_autoscaler.domain.horizontal.status import is_zeroed, status_patch
from inference_autoscaler.domain.horizontal.verdict import ABLE, ACTIVE, RESCALE, Verdict, judge
from inference_autoscaler.domain.metrics.pod_use import MEASURED
from inference_autoscaler.domain.metrics.readings import Readings
from kube import Decision, Event, Key, Manifest, Mutation, Object, Outcome, Store, Verb

SYNC_MS = 15_000
_LONGEST_PERIOD_MS = 1_800_000
_LONGEST_WINDOW_MS = 3_600_000
_LOOK_BACK_MS = max(DOWN_WINDOW_MS, _LONGEST_PERIOD_MS, _LONGEST_WINDOW_MS)


class HorizontalDesk:
    """Decides the sizes of the targets of HorizontalPodAutoscalers.

    Specification: each is looked at in every round. In fact one that is at rest is not, until a fact comes that concerns it:
    a look would come to what the one before came to (`_rests`).
    """

    def __init__(self, readings: Readings, pods: PodIndex, external: External) -> None:
        self.store, self.concerns = Store(), Concerns(pods)
        self.moved: AbstractSet[Key] = frozenset()
        """What others change at this moment: its autoscalers wait for the next round."""
        self._readings, self._external = readings, external
        self._specs: dict[Key, Horizontal | str] = {}
        self._histories: dict[Key, History] = {}
        self._agenda, self._owed = Agenda(), Owed()
        self._fresh: dict[Key, None] = {}
        self._changed: dict[Key, None] = {}
        self._seen: int | None = None
        """When decide() was last called; a successor is told by what was remembered."""
        self._has_begun = False

    def fold(self, event: Event) -> None:
        """Take in that an autoscaler changed."""
        key, item = event.key, event.new
        if item is None:
            self._forget(key)
            return
        if event.old is None or event.old.body is not item.body:
            spec = self._specs[key] = _read(item)
            if isinstance(spec, Horizontal):
                self.concerns.put(key, spec)
            else:
                self.concerns.drop(key)
        self._fresh[key] = self.concerns.touched[key] = None

    def settle(self, outcome: Outcome) -> None:
        """What was refused did not happen: it is taken back, and the autoscaler is owed another look."""
        known = self._histories.get(outcome.subject)
        if outcome.applied or known is None:
            return
        if known.changes and outcome.name == "ReplicasScaled":
            known.changes.pop()
            self._changed[outcome.subject] = None
        self._owed.refuse(outcome.subject)

    def decide(self, now: int, in_flight: AbstractSet[Key]) -> list[Decision]:
        """A look at each that is due."""
        self._begin(now)
        due = {key: now for key in self._fresh if self._is_news(key)}
        due |= dict.fromkeys(self._owed.due(in_flight), now)
        start, is_round = now // SYNC_MS * SYNC_MS, self._seen is not None and now // SYNC_MS > self._seen // SYNC_MS
        self._fresh, self._seen = {}, now
        times = dict.fromkeys(filter(self._is_still, self._agenda.take(now)), start) | due
        for key in self.concerns.touched:
            if key not in times:
                self._agenda.put(key, start + SYNC_MS)
        self.concerns.touched = {}
        last_round = start - SYNC_MS if is_round else start
        found = (self._turn(key, times[key], last_round, in_flight) for key in sorted(times))
        return [decision for decision in found if decision is not None]

    def _begin(self, now: int) -> None:
        """Whoever begins looks at all of them in the first round after what was remembered; so does one whose time was set back."""
        if self._seen is not None and now < self._seen:
            for key, history in self._histories.items():
                history.rewind(now)
                self._changed[key] = None
            self._seen, self._has_begun = now, False
        if not self._has_begun:
            self._has_begun = True
            since = now if self._seen is None else self._seen
            for key in self._specs:
                self._agenda.put(key, (since // SYNC_MS + 1) * SYNC_MS)

    def _turn(self, key: Key, now: int, last_round: int, in_flight: AbstractSet[Key]) -> Decision | None:
        """A look, or, while a decision is on its way, the promise of one; and when the next look is due."""
        item, spec = self.store.get(key), self._specs.get(key)
        if item is None or spec is None:
            return None
        if key in in_flight:
            self._owed.put_off(key)
            return None
        self._owed.drop(key)
        history = self._history(item, now, last_round)
        decision = self._look(item, spec, history, now)
        if self._rests(item, spec, history, now):
            self._agenda.drop(key)
        else:
            self._agenda.put(key, (now // SYNC_MS + 1) * SYNC_MS)
        return decision

    def _is_still(self, key: Key) -> bool:
        """Whether nobody else changes its target at this moment; else it waits for the next round."""
        spec = self._specs.get(key)
        if isinstance(spec, Horizontal) and spec.target in self.moved:
            self.concerns.touched[key] = None
            return False
        return True

    def _rests(self, item: Object, spec: Horizontal | str, history: History, now: int) -> bool:
        """Whether looks come to the same from now on as long as no fact that concerns it comes.

        No window, and no period, sees less in a while; no pod's start is still forgiven; no source, and no node, is about to say more.
        """
        if isinstance(spec, str):
            return True
        if not history.is_settled(now, spec.horizon_ms):
            return False
        if not all(
            self._external.is_steady(item.namespace, metric) for metric in spec.metrics if metric.type == EXTERNAL
        ):
            return False
        roster, names = self.concerns.roster(item.key), {metric.name for metric in spec.metrics}
        if CPU in names and not roster.has_started(now):
            return False
        return names.isdisjoint(MEASURED) or not any(map(self._readings.use.tells_of, roster.pods))

    def _is_news(self, key: Key) -> bool:
        """Whether the autoscaler is another, or says another thing, than when it was looked at last."""
        item, known = self.store.get(key), self._histories.get(key)
        return item is not None and (known is None or known.uid != item.uid or known.generation != _generation(item))

    def passes_round(self, since: int | None, now: int) -> bool:
        """Whether it is time to look at all of them, as of the round's beginning, where that was last so before ``since``."""
        return since is not None and bool(self._specs) and now // SYNC_MS > since // SYNC_MS

    def deadline(self) -> int | None:
        """The next round in which somebody is to be looked at; at once, where it is written down that somebody is owed a look."""
        return self._seen if self._owed.at_once else self._agenda.next()

    def take_changes(self) -> dict[str, Manifest | None]:
        """What has to be remembered anew."""
        changed, self._changed = self._changed, {}
        known = ((key, self._histories.get(key)) for key in changed)
        parts = {f"{key.namespace}/{key.name}": None if one is None else one.manifest() for key, one in known}
        return {**parts, **self._owed.take_changes()}

    def restore(self, told: Mapping[str, Manifest], at: int) -> None:
        """Take up what was remembered at ``at``."""
        self._seen = at
        self._owed.restore(told.get(OWED))
        for name, one in told.items():
            namespace, slash, own = name.partition("/")
            if slash:
                self._histories[Key(AUTOSCALER, namespace, own)] = History.of(one)

    def explain(self, key: Key, now: int) -> Manifest:
        """What a look at ``now`` would come to, with what each metric asks for."""
        item, spec = self.store.get(key), self._specs.get(key)
        if item is None or not isinstance(spec, Horizontal):
            return {"found": item is not None, "message": spec or f"{key} is not there"}
        scale = scale_of(self.store.get(spec.target))
        if scale is None:
            return {"found": True, "message": f"{spec.target} is not there, or cannot be scaled"}
        verdict = self._verdict(item, spec, scale, now, self._external.present)
        return explained(verdict, spec, scale, self.concerns.roster(key))

    def check(self) -> list[str]:
        """The invariants that do not hold."""
        strangers = self._histories.keys() - self._specs.keys()
        return [f"{key} has a history and is not there" for key in sorted(strangers)] if self._has_begun else []

    def _look(self, item: Object, spec: Horizontal | str, history: History, now: int) -> Decision | None:
        if isinstance(spec, str):
            return self._told(item, _unable(ACTIVE, "InvalidMetricSourceType", spec), None, now)
        scale = scale_of(self.store.get(spec.target))
        if scale is None:
            kind, name = spec.target.kind.partition(".")[0], spec.target.name
            words = f"the HPA controller was unable to get the target's current scale: {kind} {name} is not there, or has none"
            return self._told(item, _unable(ABLE, "FailedGetScale", words), None, now)
        before = len(history.answers), len(history.changes)
        if not history.answers:
            history.note(now, scale.wanted)
        verdict = self._verdict(item, spec, scale, now, self._external.value)
        history.note(now, verdict.answer)
        if verdict.replicas != scale.wanted:
            history.changes.append((now, verdict.replicas - scale.wanted))
        if before != (len(history.answers), len(history.changes)):
            self._changed[item.key] = None
        return self._told(item, verdict, scale, now)

    def _verdict(self, item: Object, spec: Horizontal, scale: Scale, now: int, external: Value) -> Verdict:
        size, rivals = Size(scale.wanted, self.concerns.roster(item.key)), self.concerns.rivals(item.key)
        measure = measure_with(self._readings, external, spec, item.namespace, now)
        known = self._histories.get(item.key) or History(item.uid)
        zeroed = size.replicas == 0 and is_zeroed(item.status)
        return judge(spec, size, known, measure, now, zeroed=zeroed, rivals=rivals)

    def _history(self, item: Object, now: int, last_round: int) -> History:
        known = self._histories.get(item.key)
        if known is None or known.uid != item.uid:
            known = self._histories[item.key] = History(item.uid)
        if known.generation != _generation(item):
            known.generation = _generation(item)
            self._changed[item.key] = None
        known.resume(last_round)
        known.forget(now - _LOOK_BACK_MS)
        return known

    def _told(self, item: Object, verdict: Verdict, scale: Scale | None, now: int) -> Decision | None:
        current = verdict.replicas if scale is None else scale.wanted
        patch = status_patch(item, verdict, 0 if scale is None else scale.counted, current, now)
        mutations = [Mutation(Verb.STATUS, item.key, item.uid, patch=patch)] if patch else []
        if scale is not None and verdict.replicas != scale.wanted:
            message = f"New size: {verdict.replicas}; reason: {verdict.why}"
            moved = (scale.to(verdict.replicas), *mutations)
            return Decision("ReplicasScaled", item.key, item.uid, RESCALE, message, moved)
        if not mutations:
            return None
        _, reason, message = next((one for one in verdict.conditions.values() if not one[0]), _first(verdict))
        return Decision("ScalingExplained", item.key, item.uid, reason, message, tuple(mutations))

    def _forget(self, key: Key) -> None:
        self._specs.pop(key, None)
        self.concerns.drop(key)
        self._agenda.drop(key)
        self._owed.drop(key)
        self._fresh.pop(key, None)
        if self._histories.pop(key, None) is not None:
            self._changed[key] = None


def _first(verdict: Verdict) -> tuple[bool, str, str]:
    return next(reversed(verdict.conditions.values()))


def _unable(condition: str, reason: str, message: str) -> Verdict:
    return Verdict(0, conditions={condition: (False, reason, message)})


def _read(item: Object) -> Horizontal | str:
    try:
        return read(item)
    except (ValueError, TypeError, KeyError) as error:
        return f"it makes no sense: {type(error).__name__}: {error}"


def _generation(item: Object) -> int:
    return int(item.metadata.get("generation", 1))
