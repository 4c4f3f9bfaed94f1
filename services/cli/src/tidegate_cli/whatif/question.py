"""Would it start, where, at whose cost, else why not and when: asked of a world that goes on from a snapshot."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from admission.questions import Questions
from kube import Key, Manifest, Object, Verb, parse_time, rfc3339
from kube.running_estimates import stated_length
from testing.scenarios.target import PodReport
from tidegate import subjects
from tidegate.codec.decisions import decode_commit
from tidegate.decision.v1 import decision_pb2
from tidegate_cli.sim.world import World

GROUP_KIND = "PodGroup.scheduling.volcano.sh"
RESERVATION_KIND = "Reservation.scheduling.koordinator.sh"
GROUP = "scheduling.k8s.io/group-name"
STEP_MS = 60_000
MOST_STEPS = 2_000


@dataclass(slots=True)
class Answer:
    """About one object. ``verdict``: now, later, waits (it is not known until when), runs (it did before), applied (it runs
    nothing), refused, missing."""

    name: str
    verdict: str
    at_ms: int | None = None
    placements: list[tuple[str, str]] = field(default_factory=list)
    evictions: list[dict[str, str]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    details: Manifest = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def manifest(self) -> Manifest:
        """As plain data."""
        return {
            "name": self.name,
            "verdict": self.verdict,
            "at": rfc3339(self.at_ms) if self.at_ms is not None else None,
            "placements": [{"pod": pod, "node": node} for pod, node in self.placements],
            "evictions": self.evictions,
            "why": self.lines,
            "details": self.details,
            "warnings": self.warnings,
        }


@dataclass(slots=True)
class Question:
    """Asks about documents, all of which are handed in together; looks ``horizon_ms`` ahead for those that wait."""

    world: World
    horizon_ms: int
    answers: list[Answer] = field(default_factory=list)
    _keys: dict[int, Key] = field(default_factory=dict)

    def ask(self, manifests: Sequence[Manifest], keys: Sequence[Key] = ()) -> list[Answer]:
        """An answer for each document, in order, and for each of the objects that are there already."""
        self.world.settle()
        position = self._position()
        for number, result in enumerate(self.world.apply_each(manifests)):
            name = f"{result.key.kind.partition('.')[0].lower()}/{result.key.name}"
            answer = Answer(name, "refused" if result.outcome == "refused" else "waits", warnings=list(result.warnings))
            self.answers.append(answer)
            if answer.verdict == "refused":
                answer.lines = [str(error) for error in result.errors] or [result.message]
            else:
                self._keys[number] = result.key
        self._note_those_there(keys)
        self.world.settle()
        evictions = list(self._evictions(position))
        self._look(now=True)
        for answer in self._open():
            item = self.world.store().get(self._key_of(answer))
            if item is not None:
                answer.lines, answer.details = self.world.do(
                    Questions(self.world.bus, self.world.store()).explain(item)
                )
        self._look_ahead()
        self._blame(evictions)
        return self.answers

    def _note_those_there(self, keys: Sequence[Key]) -> None:
        """Objects that were there before: some run already."""
        for key in keys:
            name = f"{key.kind.partition('.')[0].lower()}/{key.name}"
            there = self.world.store().get(key) is not None
            if there:
                self._keys[len(self.answers)] = key
            self.answers.append(Answer(name, "waits" if there else "missing"))
        fresh = self.answers[len(self.answers) - len(keys) :]
        self._look(now=True, answers=[answer for answer in fresh if answer.verdict == "waits"])
        for answer in fresh:
            answer.verdict = "runs" if answer.verdict == "now" else answer.verdict

    def _open(self) -> list[Answer]:
        return [answer for answer in self.answers if answer.verdict == "waits"]

    def _key_of(self, answer: Answer) -> Key:
        return self._keys[next(number for number, known in enumerate(self.answers) if known is answer)]

    def _look(self, *, now: bool, answers: Sequence[Answer] | None = None) -> None:
        """Note who has started by now."""
        for answer in self._open() if answers is None else answers:
            item = self.world.store().get(self._key_of(answer))
            pods = [pod for pod in self._below(item) if pod.kind == "Pod"] if item is not None else []
            bound = [pod for pod in pods if pod.spec.get("nodeName")]
            if item is not None and item.kind == RESERVATION_KIND and item.status.get("nodeName"):
                answer.verdict = "now" if now else "later"
                answer.placements = [(item.name, str(item.status["nodeName"]))]
                answer.at_ms = self.world.now()
            elif not pods and item is not None and now and not self._runs(item):
                answer.verdict = "applied"
            elif bound and self._enough(bound):
                answer.verdict = "now" if now else "later"
                answer.placements = sorted((pod.name, str(pod.spec["nodeName"])) for pod in bound)
                answer.at_ms = min(_bound_at(pod, self.world.now()) for pod in bound)

    def _enough(self, bound: Sequence[Object]) -> bool:
        """Whether every gang among them has its minimum."""
        counts: dict[Key, int] = {}
        for pod in bound:
            key = Key(GROUP_KIND, pod.namespace, pod.annotations.get(GROUP, ""))
            counts[key] = counts.get(key, 0) + 1
        groups = {key: self.world.store().get(key) for key in counts}
        return all(int(g.spec.get("minMember") or 1) <= counts[key] for key, g in groups.items() if g is not None)

    def _runs(self, item: Object) -> bool:
        """Whether it is something that has pods, or will have."""
        spec = item.spec
        return (
            item.kind == "Pod"
            or bool(self.world.store().owned_by(item.uid))
            or any(
                part in spec for part in ("template", "tasks", "replicatedJobs", "jobTemplate", "trainer", "runtimeRef")
            )
            or any(name.endswith("ReplicaSpecs") for name in spec)
        )

    def _below(self, item: Object) -> list[Object]:
        owned = self.world.store().owned_by(item.uid)
        return [item, *(deeper for child in owned for deeper in self._below(child))]

    def _look_ahead(self) -> None:
        """Let time pass, in which pods end when they said that they would."""
        end = self.world.now() + self.horizon_ms
        for _ in range(MOST_STEPS):
            if not self._open() or self.world.now() >= end:
                return
            ends = self._ends()
            due = min(ends.values(), default=end)
            if not ends and not self._may_move():
                return
            self.world.advance(
                max(1, min(due, end, self.world.now() + (STEP_MS if not ends else self.horizon_ms)) - self.world.now())
            )
            for key, at in ends.items():
                if at <= self.world.now() and self._is_bound(key):
                    self.world.set_pod(key.namespace, key.name, PodReport(phase="Succeeded"))
            self.world.settle()
            self._look(now=False)

    def _may_move(self) -> bool:
        """Whether anything is under way that could end: pods that leave, or that say how long they run."""
        pods = (self.world.store().objects[key] for key in self.world.store().of_kind("Pod"))
        return any(pod.deleting or "simulate/duration" in pod.annotations for pod in pods if pod.spec.get("nodeName"))

    def _is_bound(self, key: Key) -> bool:
        pod = self.world.store().get(key)
        return pod is not None and bool(pod.spec.get("nodeName")) and pod.status.get("phase") == "Running"

    def _ends(self) -> dict[Key, int]:
        """When the pods that run now end, as far as they or their groups say."""
        found: dict[Key, int] = {}
        store = self.world.store()
        for key, pod in store.of_kind("Pod").items():
            if pod.status.get("phase") != "Running" or pod.deleting:
                continue
            group = store.get(Key(GROUP_KIND, pod.namespace, pod.annotations.get(GROUP, "")))
            end = _end_of(pod, stated_length(pod.annotations, group.annotations if group is not None else {}))
            if end is not None and end > self.world.now() - STEP_MS:
                found[key] = max(end, self.world.now() + 1)
        return found

    def _position(self) -> int:
        entries = self.world.bus.log(subjects.decisions("gang_scheduler")).entries(0)
        return entries[-1].sequence if entries else 0

    def _evictions(self, after: int) -> Iterator[dict[str, str]]:
        """Who was evicted since, for whom and why."""
        for entry in self.world.bus.log(subjects.decisions("gang_scheduler")).entries(after):
            for _, decision in decode_commit(decision_pb2.Commit.FromString(entry.payload)):
                for mutation in decision.mutations:
                    if mutation.verb is Verb.EVICT:
                        pod = f"{mutation.key.namespace}/{mutation.key.name}"
                        told = {"reason": decision.reason, "message": decision.message}
                        yield {"pod": pod, "for": decision.subject.name, **told}

    def _blame(self, evictions: list[dict[str, str]]) -> None:
        """Each eviction belongs to the document whose group or pod it was for."""
        store = self.world.store()
        for answer in self.answers:
            if answer.verdict not in ("refused", "missing"):
                item = store.get(self._key_of(answer))
                names = {one.name for one in self._below(item)} if item is not None else set()
                answer.evictions = [one for one in evictions if one["for"] in names]


def _bound_at(pod: Object, now: int) -> int:
    conditions = (one for one in pod.status.get("conditions") or () if one.get("type") == "PodScheduled")
    told = next((str(one.get("lastTransitionTime") or "") for one in conditions), "")
    try:
        return parse_time(told) if told else now
    except ValueError:
        return now


def _end_of(pod: Object, length: int | None) -> int | None:
    try:
        return parse_time(str(pod.status.get("startTime") or "")) + length if length is not None else None
    except ValueError:
        return None
