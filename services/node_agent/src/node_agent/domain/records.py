"""What the node remembers of a pod: the state of each container, and the events that change it.

Records outlive the node's process: they are written to the pod's folder before an action is taken that must not be
taken twice. Every function here returns a new record; all times are milliseconds since the epoch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from node_agent.domain.backoff import Backoff
from node_agent.domain.containers import Container


class Stage(StrEnum):
    """Where a container stands."""

    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    ENDED = "ended"


class Halt(StrEnum):
    """How far a running container has been brought to its end."""

    NONE = ""
    HOOK = "hook"
    TERM = "term"
    KILL = "kill"


@dataclass(frozen=True, slots=True)
class Process:
    """A process and the one that watches over it; a start time (clock ticks since boot) tells it from a later namesake."""

    pid: int
    started: int
    shim: int
    shim_started: int


@dataclass(frozen=True, slots=True)
class Termination:
    """How a container ended."""

    exit_code: int
    reason: str
    message: str
    started_at: int
    finished_at: int
    pid: int = 0


@dataclass(frozen=True, slots=True)
class ProbeState:
    """How a probe stands: results in a row, whether it passes, when it is due (0: as soon as may be)."""

    successes: int = 0
    failures: int = 0
    passed: bool = False
    due: int = 0
    asked: bool = False
    message: str = ""


@dataclass(frozen=True, slots=True)
class ContainerRecord:
    """One container of a pod. ``attempt`` counts its starts; ``attempt - 1`` are restarts."""

    stage: Stage = Stage.WAITING
    attempt: int = 0
    process: Process | None = None
    started_at: int = 0
    end: Termination | None = None
    """How the newest attempt ended, while the stage is ENDED."""
    last: Termination | None = None
    """How the attempt before it ended."""
    backoff: Backoff = field(default_factory=Backoff)
    hooked: bool = False
    """Whether the postStart hook is done."""
    hooking: bool = False
    probes: Mapping[str, ProbeState] = field(default_factory=dict)
    halt: Halt = Halt.NONE
    halt_deadline: int = 0
    halt_reason: str = ""
    """Why the node ends it although the pod goes on: a failed liveness probe, a failed postStart hook."""
    wait_reason: str = ""
    wait_message: str = ""
    retry_at: int = 0
    """After a start that was not possible: when to try again."""

    @property
    def alive(self) -> bool:
        return self.stage in (Stage.STARTING, Stage.RUNNING)


@dataclass(frozen=True, slots=True)
class Stop:
    """The order to end a whole pod: since when, how long it may take, and why (reason "" for a deletion)."""

    since: int
    grace_ms: int
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class PodRecord:
    """One pod. ``phase`` is final once it is Succeeded or Failed; ``user_id`` is the one that it runs as, -1 for the node's."""

    containers: Mapping[str, ContainerRecord]
    accepted_at: int
    user_id: int = -1
    stop: Stop | None = None
    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    gone: bool = False
    """Whether it was told to stop and nothing of it runs any more."""
    conditions: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """Each condition's status and since when it has it."""

    @property
    def alive(self) -> bool:
        return any(record.alive for record in self.containers.values())

    def with_container(self, name: str, record: ContainerRecord) -> "PodRecord":
        """This record with another state of one container."""
        return replace(self, containers={**self.containers, name: record})


def starting(record: ContainerRecord) -> ContainerRecord:
    """The next attempt is on its way."""
    return replace(
        record,
        stage=Stage.STARTING,
        attempt=record.attempt + 1,
        last=record.end or record.last,
        end=None,
        process=None,
        hooked=False,
        hooking=False,
        probes={},
        halt=Halt.NONE,
        halt_deadline=0,
        halt_reason="",
        wait_reason="",
        wait_message="",
        retry_at=0,
    )


def blocked(record: ContainerRecord, reason: str, message: str, retry_at: int) -> ContainerRecord:
    """The attempt could not be made yet, for want of something that may still come; it does not count."""
    return replace(
        record,
        stage=Stage.ENDED if record.last and record.attempt > 1 else Stage.WAITING,
        attempt=record.attempt - 1,
        end=record.last if record.attempt > 1 else None,
        wait_reason=reason,
        wait_message=message,
        retry_at=retry_at,
    )


def launched(record: ContainerRecord, container: Container, process: Process, now: int) -> ContainerRecord:
    """The process runs."""
    probes = {kind: ProbeState(due=now + probe.initial_delay_ms) for kind, probe in container.probes()}
    hooked = container.post_start is None
    return replace(record, stage=Stage.RUNNING, process=process, started_at=now, probes=probes, hooked=hooked)


def ended(record: ContainerRecord, end: Termination) -> ContainerRecord:
    """The process and all that it left behind have ended."""
    message = end.message or record.halt_reason
    return replace(record, stage=Stage.ENDED, end=replace(end, message=message), probes={}, hooking=False)


def post_start_done(record: ContainerRecord, failure: str) -> ContainerRecord:
    """The postStart hook has ended; a failure ends the container."""
    if failure:
        return replace(record, hooking=False, halt_reason=f"postStart hook failed: {failure}")
    return replace(record, hooking=False, hooked=True)


def pre_stop_done(record: ContainerRecord) -> ContainerRecord:
    """The preStop hook has ended, well or not: the container may be ended now."""
    return replace(record, hooking=False)
