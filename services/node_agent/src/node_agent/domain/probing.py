"""What the results of probes mean: ready or not, started or not, to be ended or not."""

from dataclasses import replace

from kube.words import counted
from node_agent.domain.containers import Container, Probe
from node_agent.domain.records import ContainerRecord, ProbeState, Stage

ENDING = ("startup", "liveness")
"""Kinds of probes whose failure ends the container."""
OWN = (*ENDING, "readiness")
"""Kinds of a container's own probes; others were asked for by somebody else."""


def is_started(container: Container, record: ContainerRecord) -> bool:
    """Whether the container is up: it runs, its postStart hook is done and its startup probe has passed."""
    if record.stage is not Stage.RUNNING or not record.hooked:
        return False
    return container.startup is None or record.probes.get("startup", ProbeState()).passed


def is_ready(container: Container, record: ContainerRecord) -> bool:
    """Whether the container serves: up, and its readiness probe passes."""
    if not is_started(container, record):
        return False
    return container.readiness is None or record.probes.get("readiness", ProbeState()).passed


def active_probes(container: Container, record: ContainerRecord) -> tuple[tuple[str, Probe, ProbeState], ...]:
    """The probes that are to be made now or later: the startup probe alone until it has passed, then the others.

    What others asked for is told once it has been answered, and asked no more until the container starts again.
    """
    if record.stage is not Stage.RUNNING or record.halt or record.halt_reason:
        return ()
    starting = container.startup is not None and not record.probes.get("startup", ProbeState()).passed
    due = ((kind, probe, record.probes.get(kind, ProbeState())) for kind, probe in container.probes())
    return tuple(
        (kind, probe, state)
        for kind, probe, state in due
        if (kind == "startup") == starting and not (state.passed and kind not in OWN)
    )


def asked(record: ContainerRecord, kind: str) -> ContainerRecord:
    """A probe was sent and has no answer yet."""
    return _with(record, kind, replace(record.probes.get(kind, ProbeState()), asked=True))


def answered(record: ContainerRecord, container: Container, kind: str, failure: str, now: int) -> ContainerRecord:
    """A probe has its answer: "" when all is well, else what is wrong."""
    probe, state = dict(container.probes())[kind], record.probes.get(kind)
    if state is None:  # an answer for an attempt that has ended meanwhile
        return record
    successes, failures = (0, state.failures + 1) if failure else (state.successes + 1, 0)
    passed = state.passed
    if successes >= probe.success_threshold:
        passed = True
    elif failures >= probe.failure_threshold:
        passed = False
    new = ProbeState(successes, failures, passed, due=now + probe.period_ms, message=failure)
    record = _with(record, kind, new)
    if kind in ENDING and failures >= probe.failure_threshold:
        reason = f"{kind} probe failed {counted(failures, 'time')} in a row: {failure}"
        record = replace(record, halt_reason=reason)
    return record


def halt_grace_seconds(container: Container, record: ContainerRecord, pod_grace: int) -> int:
    """The grace of a container that a probe ends: the probe's own, else the pod's."""
    for kind, probe in container.probes():
        if record.halt_reason.startswith(f"{kind} probe") and probe.grace_seconds is not None:
            return probe.grace_seconds
    return pod_grace


def _with(record: ContainerRecord, kind: str, state: ProbeState) -> ContainerRecord:
    return replace(record, probes={**record.probes, kind: state})
