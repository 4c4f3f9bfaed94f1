"""What a pod's containers should do next.

``decide`` is a function of the pod, what is remembered of it, and the time. It starts init containers one after the
other, sidecars among them in their place, then the main containers together; restarts what is to be restarted; asks for
probes and hooks; and brings all to an end when the pod is told to stop, is over, or has no time left.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from node_agent.domain import backoff, probing, stopping
from node_agent.domain.containers import Container, Pod, Role
from node_agent.domain.records import ContainerRecord, PodRecord, Stage, Stop, starting


class Verb(Enum):
    """What is to be done to one container."""

    START = "start"
    PROBE = "probe"
    POST_START = "post_start"
    PRE_STOP = "pre_stop"
    TERMINATE = "terminate"
    KILL = "kill"


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do to the container named ``container``; ``probe`` is the kind of a probe."""

    verb: Verb
    container: str
    probe: str = ""


@dataclass(frozen=True, slots=True)
class RestartRule:
    """The pause between attempts: ``base_ms`` doubled up to ``limit_ms``."""

    base_ms: int = 10_000
    limit_ms: int = 300_000


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do now, the record with that counted as done, and when to ask again if nothing happens before."""

    record: PodRecord
    actions: tuple[Action, ...] = ()
    wake_at: int | None = None


def decide(pod: Pod, record: PodRecord, rule: RestartRule, now: int) -> Plan:
    """The next step of ``pod``: see the module. Asked again at once with the plan's record, it has nothing to do."""
    return _Step(pod, record, rule, now).run()


def outcome(pod: Pod, record: PodRecord) -> tuple[str, str, str] | None:
    """The final phase with reason and message, once it is certain; containers may still be running then."""
    if record.stop is not None and record.stop.reason:
        return "Failed", record.stop.reason, record.stop.message
    for container in pod.of_role(Role.INIT):
        state = record.containers[container.name]
        if _is_final(container, state) and state.end and state.end.exit_code:
            return "Failed", "", f"init container {container.name} ended with exit code {state.end.exit_code}"
    ends = []
    for container in pod.of_role(Role.MAIN):
        state = record.containers[container.name]
        if state.end is None or not _is_final(container, state):
            return None
        ends.append((container.name, state.end.exit_code))
    failed = [f"{name} (exit code {code})" for name, code in ends if code]
    return ("Failed", "", f"containers failed: {', '.join(failed)}") if failed else ("Succeeded", "", "")


def _is_final(container: Container, state: ContainerRecord) -> bool:
    if state.stage is not Stage.ENDED or state.end is None:
        return False
    return container.restarts == "Never" or (container.restarts == "OnFailure" and state.end.exit_code == 0)


class _Step:
    """One call of ``decide``: the record as it changes, and what came together so far."""

    def __init__(self, pod: Pod, record: PodRecord, rule: RestartRule, now: int) -> None:
        self.pod, self.record, self.rule, self.now = pod, record, rule, now
        self.actions: list[Action] = []
        self.wakes: list[int] = []

    def run(self) -> Plan:
        self._check_deadline()
        over = self.record.stop is not None or outcome(self.pod, self.record) is not None
        if over:
            self._end_all()
        else:
            for container in self._wanted():
                self._maintain(container)
        self._conclude()
        future = [wake for wake in self.wakes if wake > self.now]
        return Plan(self.record, tuple(self.actions), min(future, default=None))

    def _check_deadline(self) -> None:
        seconds = self.pod.deadline_seconds
        if seconds is None or self.record.stop is not None or self.record.phase in ("Succeeded", "Failed"):
            return
        end = self.record.accepted_at + seconds * 1000
        if self.now < end:
            self.wakes.append(end)
            return
        message = f"the pod was active for {seconds} s, which is its activeDeadlineSeconds"
        stop = Stop(self.now, self.pod.grace_seconds * 1000, "DeadlineExceeded", message)
        self.record = replace(self.record, stop=stop)

    def _wanted(self) -> Iterator[Container]:
        """The containers whose turn it is or was: up to the first that has not yet let the next ones go."""
        states = self.record.containers
        for index, container in enumerate(self.pod.containers):
            yield container
            if container.role is Role.MAIN or any(
                states[later.name].attempt for later in self.pod.containers[index + 1 :]
            ):
                continue
            state = states[container.name]
            ended_well = state.end is not None and state.end.exit_code == 0
            if not (ended_well if container.role is Role.INIT else probing.is_started(container, state)):
                return

    def _maintain(self, container: Container) -> None:
        state = self.record.containers[container.name]
        if state.stage is Stage.RUNNING:
            self._watch(container, state)
        elif state.stage is Stage.WAITING:
            self._start(container, state, state.retry_at)
        elif state.stage is Stage.ENDED and state.end and not _is_final(container, state):
            due = backoff.due(state.backoff, state.end.finished_at, self.rule.limit_ms)
            self._start(container, state, max(due, state.retry_at))

    def _start(self, container: Container, state: ContainerRecord, due: int) -> None:
        if self.now < due:
            self.wakes.append(due)
            return
        if state.end is not None:
            ended_at, rule = state.end.finished_at, self.rule
            longer = backoff.lengthened(state.backoff, ended_at, self.now, rule.base_ms, rule.limit_ms)
            state = replace(state, backoff=longer)
        self._do(Verb.START, container, starting(state))

    def _watch(self, container: Container, state: ContainerRecord) -> None:
        if state.halt_reason:
            grace = probing.halt_grace_seconds(container, state, self.pod.grace_seconds)
            self._halt(container, state, self.now + grace * 1000)
            return
        if container.post_start is not None and not state.hooked and not state.hooking:
            self._do(Verb.POST_START, container, replace(state, hooking=True))
        for kind, _, probe in probing.active_probes(container, self.record.containers[container.name]):
            if probe.asked:
                continue
            if self.now < probe.due:
                self.wakes.append(probe.due)
                continue
            asked = probing.asked(self.record.containers[container.name], kind)
            self._do(Verb.PROBE, container, asked, kind)

    def _end_all(self) -> None:
        deadline = stopping.deadline(self.pod, self.record, self.now)
        if self.record.stop is None:  # the work is done: the sidecars' time counts from their own end
            deadline = self.now + self.pod.grace_seconds * 1000
        for container in stopping.to_end(self.pod, self.record, self.now, deadline):
            self._halt(container, self.record.containers[container.name], deadline)

    def _halt(self, container: Container, state: ContainerRecord, deadline: int) -> None:
        halted = stopping.advance(container, state, deadline, self.now)
        if halted.halt is not state.halt:
            self._do(Verb[stopping.VERBS[halted.halt]], container, halted)
        elif halted is not state:
            self.record = self.record.with_container(container.name, halted)
        self.wakes.append(halted.halt_deadline)

    def _conclude(self) -> None:
        """The phase, and whether the pod is gone."""
        if self.record.phase == "Pending" and self._works():
            self.record = replace(self.record, phase="Running")
        if self.record.alive:
            return
        final = outcome(self.pod, self.record)
        if final is not None and self.record.phase not in ("Succeeded", "Failed"):
            phase, reason, message = final
            self.record = replace(self.record, phase=phase, reason=reason, message=message)
        if self.record.stop is not None and not self.record.stop.reason and not self.record.gone:
            self.record = replace(self.record, gone=True)

    def _works(self) -> bool:
        main = (self.record.containers[container.name] for container in self.pod.of_role(Role.MAIN))
        return any(state.attempt > 0 and state.stage is not Stage.STARTING for state in main)

    def _do(self, verb: Verb, container: Container, state: ContainerRecord, probe: str = "") -> None:
        self.actions.append(Action(verb, container.name, probe))
        self.record = self.record.with_container(container.name, state)
