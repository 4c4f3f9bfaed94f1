"""One look at one Volcano Job: what is seen, and what is decided about it so far. It ends in at most one decision."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from job_controller.domain.reconcile import Actions, View
from job_controller.domain.status_patch import changes
from job_controller.domain.volcano.census import PHASES, Census, Member
from job_controller.domain.volcano.memory import Dealt, Memory, run_of
from job_controller.domain.volcano.spec import JobSpec
from kube import Decision, Key, Manifest, Mutation, Object, Verb, key_of, parse_time, rfc3339

GROUP = "PodGroup.scheduling.volcano.sh"
REFUSED = "DecisionRefused"
"""The reason in the state of a job whose decisions were refused in a row; it goes with the next one that is carried out."""
NAME_TAKEN = "NameTaken"
"""The same for one that cannot make what it needs, as something else has the name."""


@dataclass(slots=True)
class Turn:
    """What is seen of the job, and the changes to it and to what it owns."""

    job: Object
    spec: JobSpec
    census: Census
    view: View
    memory: Memory
    now: int
    mutations: list[Mutation] = field(default_factory=list)
    wake_at: int | None = None
    version: int = 0
    retries: int = 0
    controlled: dict[str, str] | None = None
    _killed: set[str] = field(default_factory=set)
    _entered: tuple[str, str, str] | None = None
    _headline: tuple[str, str, str] | None = None

    def __post_init__(self) -> None:
        self.version, self.retries = run_of(self.job)

    @property
    def state(self) -> Manifest:
        return self.job.status.get("state") or {}

    @property
    def phase(self) -> str:
        """The phase that the job is in at the beginning of this turn; "" when it is new."""
        return str(self.state.get("phase") or "")

    @property
    def state_reason(self) -> str:
        return str(self.state.get("reason") or "")

    @property
    def state_message(self) -> str:
        return str(self.state.get("message") or "")

    @property
    def group_key(self) -> Key:
        return Key(GROUP, self.job.namespace, f"{self.job.name}-{self.job.uid}")

    @property
    def group(self) -> Object | None:
        """The job's PodGroup, unless it is on its way out."""
        group = self.view.get(self.group_key)
        return None if group is None or group.deleting else group

    @property
    def leaving(self) -> int:
        """The pods that are being deleted, those of this turn included."""
        return self.census.terminating + len(self._killed)

    def create(self, manifest: Manifest) -> None:
        self.mutations.append(Mutation(Verb.CREATE, key_of(manifest), manifest=manifest))

    def patch(self, item: Object, patch: Manifest) -> None:
        self.mutations.append(Mutation(Verb.PATCH, item.key, uid=item.uid, patch=patch))

    def delete(self, item: Object) -> None:
        self.mutations.append(Mutation(Verb.DELETE, item.key, uid=item.uid))

    def delete_pods(self, members: Iterable[Member]) -> None:
        """Delete pods of the job, each once; what is being deleted already is left alone."""
        for member in members:
            if not member.deleting and member.pod.uid not in self._killed:
                self._killed.add(member.pod.uid)
                self.delete(member.pod)

    def drop_group(self) -> None:
        """Delete the PodGroup: the next run is let in anew, and a job that has ended waits for nothing."""
        if (group := self.group) is not None:
            self.delete(group)

    def delete_job(self, message: str) -> None:
        self.delete(self.job)
        self.say("JobExpired", "TTLExpired", message)

    def next_version(self) -> None:
        """All pods made so far are of an earlier version from now on."""
        self.version += 1

    def next_retry(self) -> None:
        self.retries += 1

    def enter(self, phase: str, reason: str, message: str) -> None:
        """The job's phase, with why. The same phase again keeps the time at which it was entered."""
        self._entered = (phase, reason, message)

    def say(self, name: str, reason: str, message: str) -> None:
        """What is decided, for people; only the first call counts."""
        if self._headline is None:
            self._headline = (name, reason, message)

    def wake(self, at: int | None) -> None:
        """Look again at ``at`` milliseconds, or earlier if something else asks for it."""
        if at is not None:
            self.wake_at = at if self.wake_at is None else min(self.wake_at, at)

    def actions(self) -> Actions:
        """The decision, if anything changes at all, and when to look again."""
        status = self._status()
        patch = changes(self.job.status, {**status, "runningDuration": self.job.status.get("runningDuration", "0s")})
        if patch:
            patch["runningDuration"] = self._age()
            self.mutations.append(Mutation(Verb.STATUS, self.job.key, uid=self.job.uid, patch=patch))
        if not self.mutations:
            return Actions(wake_at=self.wake_at)
        if (self.version, self.retries) != run_of(self.job):
            self.memory.dealt = Dealt(tuple(self.memory.edges), frozenset(self._killed))
        name, reason, message = self._headline or ("JobStatusChanged", *self._why(status))
        decision = Decision(name, self.job.key, self.job.uid, reason, message, tuple(self.mutations))
        return Actions((decision,), self.wake_at)

    def _why(self, status: Manifest) -> tuple[str, str]:
        counted = ", ".join(f"{status[phase.lower()]} {phase.lower()}" for phase in PHASES if status[phase.lower()])
        return "PodsCounted", f"{status['state']['phase']}: {counted or 'no pods'}"

    def _status(self) -> Manifest:
        phases = self.census.phases()
        state = self._state()
        status: Manifest = {
            "state": state,
            "minAvailable": self.spec.minimum,
            "taskStatusCount": {name: {"phase": dict(sorted(n.items()))} for name, n in self.census.by_task().items()},
            "terminating": self.census.terminating,
            "version": self.version,
            "retryCount": self.retries,
            "conditions": self._conditions(state),
        }
        status |= {phase.lower(): phases[phase] for phase in PHASES}
        controlled = self.job.status.get("controlledResources") if self.controlled is None else self.controlled
        if controlled:
            status["controlledResources"] = controlled
        return status

    def _state(self) -> Manifest:
        kept = ("", "") if self.state_reason in (REFUSED, NAME_TAKEN) else (self.state_reason, self.state_message)
        phase, reason, message = self._entered or (self.phase or "Pending", *kept)
        since = str(self.state.get("lastTransitionTime") or "") if phase == self.phase else ""
        state = {"phase": phase, "reason": reason, "message": message}
        return {
            **{name: text for name, text in state.items() if text},
            "lastTransitionTime": since or rfc3339(self.now),
        }

    def _conditions(self, state: Manifest) -> list[Manifest]:
        """One condition for each phase that the job has been in, with the time at which it last entered it."""
        phase, before = state["phase"], list(self.job.status.get("conditions") or ())
        others = [item for item in before if item.get("status") != phase]
        if phase == self.phase and len(others) < len(before):
            return before
        return [*others, {"type": phase, "status": phase, "lastTransitionTime": state["lastTransitionTime"]}]

    def _age(self) -> str:
        try:
            seconds = max(0, self.now - parse_time(self.job.created)) // 1000
        except ValueError:
            seconds = 0
        hours, minutes = seconds // 3600, seconds // 60 % 60
        return (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + f"{seconds % 60}s"
