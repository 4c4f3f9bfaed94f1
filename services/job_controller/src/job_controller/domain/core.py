"""The core of the service: facts mark jobs, marked jobs are looked at by their kind, and decisions come out.

In words: after every fact, each job that the fact could concern is looked at once more, from nothing but the present
state and the few edges that its kind remembers. A job whose last decision has no outcome yet is left alone until it has.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from job_controller.domain.agenda import Agenda
from job_controller.domain.kubeflow.conditions import newest_state
from job_controller.domain.occupied import Occupied, taken_names
from job_controller.domain.reconcile import Actions, Impatient, JobKind, Refusal, View, Watcher
from job_controller.domain.registry import all_kinds
from kube import Decision, Event, Key, Manifest, Object, Outcome, Store, kind_id

FIRST_RETRY_MS = 5
LONGEST_RETRY_MS = 60_000
PATIENCE = 2
"""Refusals in a row that are answered at once: a decision may be late by a fact or two."""
MOST_REFUSALS = 15
"""Refusals in a row, over about two and a half minutes, after which a kind that has an end for it ends the job."""
NOTE = "RefusalNoted"
"""The decision that says on a job what is refused. It changes nothing about what is to be done."""


def concerns(kind: str, metadata: Manifest) -> bool:
    """Whether a new object can matter to a job: of pods only those that somebody owns, and no nodes at all."""
    return "ownerReferences" in metadata if kind == "Pod" else kind != "Node"


class JobCore:
    """Which pods does a job need now? One table from kind to rules, one agenda, one fold of the facts."""

    def __init__(self, kinds: Iterable[JobKind] | None = None) -> None:
        self.store, self._is_fed = Store(), False
        self.view = View(self.store)
        self._kinds = {kind.kind: kind for kind in (all_kinds() if kinds is None else kinds)}
        self._watchers: dict[str, list[Watcher]] = {}
        for kind in self._kinds.values():
            if isinstance(kind, Watcher):
                for watched in kind.watches:
                    self._watchers.setdefault(watched, []).append(kind)
        self._agenda = Agenda()
        self._refusals: dict[Key, Refusal] = {}
        self._problems: dict[Key, str] = {}
        self._occupied = Occupied()
        self._failures: dict[Key, str] = {}
        """Of the problems, those that no manifest should make, since they were asked for last."""
        self._now = 0

    def read_from(self, store: Store) -> None:
        """Look everything up in ``store``, where somebody else puts what changes; without it in a store of its own."""
        self.store, self._is_fed = store, True
        self.view = View(store)

    def fold(self, events: Sequence[Event], now: int) -> None:
        """Take in one change set. First all of it is stored, then owned objects are told, then the jobs themselves."""
        self._now = now
        for event in () if self._is_fed else events:
            if event.new is not None:
                self.store.put(event.new)
            else:
                self.store.remove(event.key)
        for event in events:
            self._tell_owners(event, now)
        for event in events:
            self._tell_itself(event, now)

    def hear(self, service: str, decision: Decision) -> None:
        """Jobs listen to facts only: what others decide shows in the objects."""

    def assume(self, decision_id: str, decision: Decision) -> None:
        """Nothing to note: the subject is in flight until its outcome, and left alone as long."""

    def settle(self, outcome: Outcome) -> None:
        """Look at the job again; after refusals in a row, less and less often."""
        key = outcome.subject
        if outcome.decision_id and outcome.name != NOTE:
            self._count(outcome)
        if key in self.store.objects:
            self._agenda.mark(key)

    def _count(self, outcome: Outcome) -> None:
        key = outcome.subject
        if outcome.applied:
            self._refusals.pop(key, None)
            return
        before = self._refusals.get(key, Refusal(0, ""))
        words = "; ".join(f"{name}: {why}" if name else why for name, why in sorted(outcome.reasons.items()))
        self._refusals[key] = Refusal(before.times + 1, words, before.noted)
        if before.times >= PATIENCE:
            self._agenda.hold(key, self._now + min(FIRST_RETRY_MS << min(before.times + 1, 20), LONGEST_RETRY_MS))

    def decide(self, now: int, in_flight: AbstractSet[Key]) -> list[Decision]:
        """What should happen now about every job that is due."""
        self._now = now
        decisions: list[Decision] = []
        for key in self._agenda.take(now, in_flight):
            actions = self._reconcile(key, now)
            self._agenda.wake(key, actions.wake_at)
            decisions.extend(actions.decisions)
        return decisions

    def deadline(self) -> int | None:
        """When the next job wants to be looked at though nothing changes."""
        return self._agenda.next_time()

    def query(self, name: str, arguments: Manifest) -> Manifest:
        """``explain``: what a job waits for. ``arguments``: kind (with group), namespace, name."""
        if name != "explain":
            raise KeyError(f"job_controller answers explain, not {name!r}")
        key = Key(*(str(arguments.get(part) or "") for part in ("kind", "namespace", "name")))
        job = self.store.get(key)
        if job is None or key.kind not in self._kinds:
            return {"found": False, "message": f"{key} is no job that is there"}
        return self._explain(job)

    def take_failures(self) -> dict[Key, str]:
        """The jobs that the rules failed at since the last call, each with the error."""
        failures, self._failures = self._failures, {}
        return failures

    def check(self) -> list[str]:
        """Jobs on the agenda that are not there; children with more than one controller."""
        wrong = [f"{key} is due but gone" for key in self._agenda.due if key not in self.store.objects]
        for item in self.store.objects.values():
            owners = item.metadata.get("ownerReferences") or ()
            if sum(1 for owner in owners if owner.get("controller")) > 1:
                wrong.append(f"{item.key} has more than one controller")
        return wrong

    def _reconcile(self, key: Key, now: int) -> Actions:
        self._occupied.forget(key)
        job = self.store.get(key)
        if job is None or job.deleting:
            return Actions()
        try:
            actions = self._after_refusals(job, now) or self._kinds[key.kind].reconcile(job, self.view, now)
        except Exception as error:
            # What makes no sense in one job must not stop all others; the next version gets its chance.
            self._note(key, error)
            return Actions()
        self._problems.pop(key, None)
        taken = {name: words for made in actions.decisions for name, words in taken_names(made, self.store).items()}
        return self._wait_for(job, taken, actions, now) if taken else actions

    def _wait_for(self, job: Object, taken: dict[Key, str], actions: Actions, now: int) -> Actions:
        """Leave undone what would be refused, until the names are free; the job says what it waits for if it can."""
        words, kind = self._occupied.wait(job.key, taken), self._kinds[job.kind]
        said = kind.note_refusal(job, self.view, now, Refusal(0, words)) if isinstance(kind, Impatient) else Actions()
        return Actions(said.decisions, actions.wake_at)

    def _after_refusals(self, job: Object, now: int) -> Actions | None:
        """What a kind has to say of a job whose decisions are refused in a row, before it is tried again; None: nothing."""
        kind, refusal = self._kinds[job.kind], self._refusals.get(job.key)
        if refusal is None or not isinstance(kind, Impatient):
            return None
        if refusal.times >= MOST_REFUSALS:
            said = kind.give_up(job, self.view, now, refusal)
        elif refusal.times > PATIENCE and not refusal.noted:
            self._refusals[job.key] = replace(refusal, noted=True)
            said = kind.note_refusal(job, self.view, now, refusal)
        else:
            return None
        return said if said.decisions else None

    def _tell_owners(self, event: Event, now: int) -> None:
        item = event.object
        owner = self._owner_of(item)
        if owner is not None and owner.kind in self._kinds:
            self._observe(owner, event, now)
        seen = {item.key}
        while owner is not None and owner.key not in seen:
            seen.add(owner.key)
            if owner.kind in self._kinds:
                self._agenda.mark(owner.key)
            owner = self._owner_of(owner)
        for key in self._occupied.freed_by(event):
            if key in self.store.objects:
                self._agenda.mark(key)
        for watcher in self._watchers.get(item.kind, ()):
            for key in watcher.concerned(event, self.view):
                if key in self.store.objects and key.kind in self._kinds:
                    self._agenda.mark(key)

    def _observe(self, job: Object, event: Event, now: int) -> None:
        try:
            self._kinds[job.kind].observe(job, event, now)
        except Exception as error:
            self._note(job.key, error)

    def _note(self, key: Key, error: Exception) -> None:
        words = _words(error)
        if not isinstance(error, ValueError) and self._problems.get(key) != words:
            self._failures[key] = words
        self._problems[key] = words

    def _tell_itself(self, event: Event, now: int) -> None:
        kind = self._kinds.get(event.key.kind)
        if kind is None:
            return
        old, new = event.old, event.new
        if old is not None and (new is None or new.uid != old.uid):
            kind.forget(old.uid)
            self._refusals.pop(event.key, None)
            self._problems.pop(event.key, None)
            self._occupied.forget(event.key)
            self._agenda.forget(event.key)
        if new is not None:
            if old is not None and old.uid == new.uid and old.body is not new.body:
                # Somebody changed what it asks for: what was refused may be mended.
                self._refusals.pop(event.key, None)
                self._agenda.release(event.key)
            self._observe(new, event, now)
            self._agenda.mark(event.key)

    def _owner_of(self, item: Object) -> Object | None:
        reference = item.controller
        if reference is None:
            return None
        kind = kind_id(str(reference.get("apiVersion") or ""), str(reference.get("kind") or ""))
        owner = self.store.get(Key(kind, item.namespace, str(reference.get("name") or "")))
        return owner if owner is not None and owner.uid == reference.get("uid") else None

    def _explain(self, job: Object) -> Manifest:
        state = job.status.get("state") or newest_state(job.status)
        refusal = self._refusals.get(job.key)
        answer: Manifest = {
            "found": True,
            "job": str(job.key),
            "phase": state.get("phase", ""),
            "reason": state.get("reason", ""),
            "message": state.get("message", ""),
        }
        waits = [line for item in self.view.owned(job.uid) for line in _waits(item)]
        if waits := [*filter(None, [self._occupied.words.get(job.key)]), *waits]:
            answer["waits"] = waits
        if problem := self._problems.get(job.key):
            answer |= {"reason": "SpecInvalid", "message": problem}
        if refusal:
            answer["refused"] = {"times": refusal.times, "message": refusal.message}
        if (wake := self._agenda.alarm(job.key)) is not None:
            answer["looksAgainAt"] = wake
        return answer


def _words(error: Exception) -> str:
    """What is wrong. A ValueError is written for people; of others the kind of error tells something too."""
    return str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"


def _waits(item: Object) -> list[str]:
    """What others have said about an object of the job that is not where it should be."""
    conditions = item.status.get("conditions") or ()
    said = [
        word for word in conditions if word.get("type") in ("Unschedulable", "PodScheduled") and word.get("message")
    ]
    return [f"{item.name}: {word['message']}" for word in said if _hinders(word)]


def _hinders(condition: Manifest) -> bool:
    return bool(condition.get("status") == ("True" if condition.get("type") == "Unschedulable" else "False"))
