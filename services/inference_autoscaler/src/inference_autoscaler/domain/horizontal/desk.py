"""All HorizontalPodAutoscalers: each is looked at when it is new or changed, and at each whole multiple of 15 seconds."""

import json
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from inference_autoscaler.domain.cluster.pod_index import PodIndex
from inference_autoscaler.domain.cluster.scale import Scale, scale_of
from inference_autoscaler.domain.horizontal.history import History
from inference_autoscaler.domain.horizontal.measuring import External, measure_with
from inference_autoscaler.domain.horizontal.proposal import Size
from inference_autoscaler.domain.horizontal.scaling_rules import DOWN_WINDOW_MS
from inference_autoscaler.domain.horizontal.spec import AUTOSCALER, Horizontal, read
from inference_autoscaler.domain.horizontal.status import is_zeroed, status_patch
from inference_autoscaler.domain.horizontal.verdict import ABLE, ACTIVE, RESCALE, Verdict, judge
from inference_autoscaler.domain.metrics.readings import Readings
from kube import Decision, Event, Key, Manifest, Mutation, Object, Outcome, Store, Verb

SYNC_MS = 15_000
_LONGEST_PERIOD_MS = 1_800_000
_LONGEST_WINDOW_MS = 3_600_000


class HorizontalDesk:
    """Decides the sizes of the targets of HorizontalPodAutoscalers."""

    def __init__(self, readings: Readings, pods: PodIndex, external: External, asked: External) -> None:
        """``asked`` is like ``external``, for questions: it changes nothing."""
        self.store = Store()
        self.changed = False
        """Whether anything of what has to be remembered changed."""
        self.moved: AbstractSet[Key] = frozenset()
        """What others change at this moment: its autoscalers wait for the next round."""
        self._readings, self._pods, self._external, self._asked = readings, pods, external, asked
        self._specs: dict[Key, Horizontal | str] = {}
        self._histories: dict[Key, History] = {}
        self._due: dict[Key, None] = {}
        self._fresh: dict[Key, None] = {}
        self._seen: int | None = None
        """When decide() was last called; a successor is told by what was remembered."""
        self._has_begun = False

    def fold(self, event: Event) -> None:
        """Take in that an autoscaler changed."""
        if event.new is None:
            self._specs.pop(event.key, None)
            self._due.pop(event.key, None)
            self._fresh.pop(event.key, None)
            self.changed |= self._histories.pop(event.key, None) is not None
            return
        if event.old is None or event.old.body is not event.new.body:
            self._specs[event.key] = _read(event.new)
        self._fresh[event.key] = None

    def settle(self, outcome: Outcome) -> None:
        """What was refused did not happen: it is taken back, and the autoscaler looked at again."""
        if outcome.applied:
            return
        self._due[outcome.subject] = None
        known = self._histories.get(outcome.subject)
        if known is not None and known.changes and outcome.name == "ReplicasScaled":
            known.changes.pop()
            self.changed = True

    def decide(self, now: int, in_flight: AbstractSet[Key]) -> list[Decision]:
        """A look at each that is due."""
        self._due.update(dict.fromkeys(key for key in self._fresh if self._is_news(key)))
        self._fresh = {}
        is_round, self._seen = self.passes_round(self._seen, now), now
        start = now // SYNC_MS * SYNC_MS
        if not self._has_begun:
            self._has_begun = True
            for history in self._histories.values():
                history.resume(start - SYNC_MS if is_round else start)
        times = dict.fromkeys(self._still() if is_round else (), start) | dict.fromkeys(self._due, now)
        if not times:
            return []
        self._due = {key: None for key in times if key in in_flight}
        rivals = self._rivals()
        found = (self._look(key, rivals.get(key, []), times[key]) for key in sorted(times) if key not in in_flight)
        return [decision for decision in found if decision is not None]

    def _is_news(self, key: Key) -> bool:
        """Whether the autoscaler is another, or says another thing, than when it was looked at last."""
        item, known = self.store.get(key), self._histories.get(key)
        return item is not None and (known is None or known.uid != item.uid or known.generation != _generation(item))

    def _still(self) -> list[Key]:
        """Those whose target nobody else changes at this moment."""
        return [key for key, spec in self._specs.items() if isinstance(spec, str) or spec.target not in self.moved]

    def passes_round(self, since: int | None, now: int) -> bool:
        """Whether it is time to look at all of them, as of the round's beginning, where that was last so before ``since``."""
        return since is not None and bool(self._specs) and now // SYNC_MS > since // SYNC_MS

    def deadline(self) -> int | None:
        """The next look at all of them."""
        return None if self._seen is None or not self._specs else (self._seen // SYNC_MS + 1) * SYNC_MS

    def manifest(self) -> Manifest:
        """What has to be remembered."""
        return {f"{key.namespace}/{key.name}": known.manifest() for key, known in sorted(self._histories.items())}

    def restore(self, told: Mapping[str, Manifest], at: int) -> None:
        """Take up what was remembered at ``at``."""
        self._seen = at
        for name, one in told.items():
            namespace, _, own = name.partition("/")
            self._histories[Key(AUTOSCALER, namespace, own)] = History.of(one)

    def explain(self, key: Key, now: int) -> Manifest:
        """What a look at ``now`` would come to, with what each metric asks for."""
        item, spec = self.store.get(key), self._specs.get(key)
        if item is None or not isinstance(spec, Horizontal):
            return {"found": item is not None, "message": spec or f"{key} is not there"}
        scale = scale_of(self.store.get(spec.target))
        if scale is None:
            return {"found": True, "message": f"{spec.target} is not there, or cannot be scaled"}
        verdict = self._verdict(item, spec, scale, self._rivals().get(key, []), now, self._asked)
        return {
            "found": True,
            "replicas": verdict.replicas,
            "metrics": [{"metric": metric.title, "asksFor": one.replicas} for metric, one in verdict.measured],
            "conditions": verdict.told(),
            "message": verdict.why or "the size stays",
        }

    def check(self) -> list[str]:
        """The invariants that do not hold."""
        strangers = self._histories.keys() - self._specs.keys()
        return [f"{key} has a history and is not there" for key in sorted(strangers)] if self._has_begun else []

    def _look(self, key: Key, rivals: list[str], now: int) -> Decision | None:
        item, spec = self.store.get(key), self._specs.get(key)
        if item is None or spec is None:
            return None
        history = self._history(item, now)
        if isinstance(spec, str):
            return self._told(item, _unable(ACTIVE, "InvalidMetricSourceType", spec), None, now)
        scale = scale_of(self.store.get(spec.target))
        if scale is None:
            kind, name = spec.target.kind.partition(".")[0], spec.target.name
            words = f"the HPA controller was unable to get the target's current scale: {kind} {name} is not there, or has none"
            return self._told(item, _unable(ABLE, "FailedGetScale", words), None, now)
        if not history.answers:
            self.changed |= history.note(now, scale.wanted)
        verdict = self._verdict(item, spec, scale, rivals, now, self._external)
        self.changed |= history.note(now, verdict.answer)
        if verdict.replicas != scale.wanted:
            history.changes.append((now, verdict.replicas - scale.wanted))
            self.changed = True
        return self._told(item, verdict, scale, now)

    def _verdict(
        self, item: Object, spec: Horizontal, scale: Scale, rivals: list[str], now: int, external: External
    ) -> Verdict:
        size = Size(scale.wanted, self._pods.selected(item.namespace, scale.selector))
        measure = measure_with(self._readings, external, spec, item.namespace, now)
        known = self._histories.get(item.key) or History(item.uid)
        return judge(spec, size, known, measure, now, zeroed=is_zeroed(item.status), rivals=rivals)

    def _history(self, item: Object, now: int) -> History:
        known = self._histories.get(item.key)
        if known is None or known.uid != item.uid:
            known = self._histories[item.key] = History(item.uid)
        if known.generation != _generation(item):
            known.generation, self.changed = _generation(item), True
        known.forget(now - max(DOWN_WINDOW_MS, _LONGEST_PERIOD_MS, _LONGEST_WINDOW_MS))
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

    def _rivals(self) -> dict[Key, list[str]]:
        """For each autoscaler whose target's pods another one means too: the names of the others."""
        groups: dict[tuple[str, str], list[Key]] = {}
        for key, spec in self._specs.items():
            scale = scale_of(self.store.get(spec.target)) if isinstance(spec, Horizontal) else None
            if scale is not None:
                groups.setdefault((key.namespace, json.dumps(scale.selector, sort_keys=True)), []).append(key)
        return {
            key: sorted(other.name for other in keys if other != key)
            for keys in groups.values()
            if len(keys) > 1
            for key in keys
        }


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
