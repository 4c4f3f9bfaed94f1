"""A pod's record in Kubernetes' words: the status that the node reports."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kube import Manifest, rfc3339
from kube.environment import containers as all_containers
from node_agent.domain import probing
from node_agent.domain.containers import Container, Pod, Role
from node_agent.domain.records import ContainerRecord, PodRecord, ProbeState, Stage, Termination

Condition = tuple[str, bool, str, str]
"""Type, whether it holds, reason, message."""


def with_conditions(pod: Pod, record: PodRecord, now: int) -> PodRecord:
    """The record with the times of its conditions brought up to date: a time moves only when the status does."""
    seen = dict(record.conditions)
    for name, holds, _, _ in _conditions(pod, record):
        value = str(holds)
        if seen.get(name, ("", 0))[0] != value:
            seen[name] = (value, now)
    return record if seen == record.conditions else replace(record, conditions=seen)


def pod_status(pod: Pod, record: PodRecord, manifest: Manifest, notes: Mapping[str, str]) -> Manifest:
    """The status of ``pod``; ``notes`` are extra conditions of type → message that say what is not in force for it.

    Address fields are taken over from ``manifest``. Call it with a record that went through ``with_conditions``.
    """
    given = manifest.get("status") or {}
    images = {str(item.get("name")): str(item.get("image") or "") for item in all_containers(manifest)}
    main: list[Manifest] = []
    init: list[Manifest] = []
    for container in pod.containers:
        state = _container_status(pod, container, record, images.get(container.name, ""))
        (main if container.role is Role.MAIN else init).append(state)
    status: Manifest = {
        "phase": record.phase,
        "conditions": [_condition(record, *one) for one in _conditions(pod, record)] + _notes(record, notes),
        "startTime": rfc3339(record.accepted_at),
        "containerStatuses": main,
    }
    if init:
        status["initContainerStatuses"] = init
    if record.reason:
        status["reason"] = record.reason
    if record.message:
        status["message"] = record.message
    if given.get("podIP"):
        status |= {"podIP": given["podIP"], "podIPs": [{"ip": given["podIP"]}]}
    if given.get("hostIP"):
        status["hostIP"] = given["hostIP"]
    return status


def _conditions(pod: Pod, record: PodRecord) -> list[Condition]:
    waiting = [item.name for item in pod.of_role(Role.INIT) if not _ended_well(record.containers[item.name])]
    waiting += [item.name for item in pod.of_role(Role.SIDECAR) if not _was_started(item, record)]
    conditions = [_all_of("Initialized", waiting, "ContainersNotInitialized", "containers with incomplete status")]
    serving = [item for item in pod.containers if item.role is not Role.INIT]
    unready = [item.name for item in serving if not probing.is_ready(item, record.containers[item.name])]
    for name in ("ContainersReady", "Ready"):
        if record.phase in ("Succeeded", "Failed"):
            reason = "PodCompleted" if record.phase == "Succeeded" else "PodFailed"
            conditions.append((name, False, reason, record.message))
        else:
            conditions.append(_all_of(name, unready, "ContainersNotReady", "containers with unready status"))
    return conditions + _answers(pod, record)


def _answers(pod: Pod, record: PodRecord) -> list[Condition]:
    """A condition for each probe that others asked for. A container that has ended well leaves the answers that it gave."""
    found: list[Condition] = []
    for container in pod.containers:
        for name, _ in container.asked:
            of = record.containers[container.name]
            state = of.probes.get(name, ProbeState())
            holds = state.passed or (_ended_well(of) and record.conditions.get(name, ("", 0))[0] == "True")
            found.append((name, holds, "" if holds else "NotAnswered", "" if holds else state.message))
    return found


def _all_of(name: str, missing: list[str], reason: str, said: str) -> Condition:
    return (name, False, reason, f"{said}: [{' '.join(missing)}]") if missing else (name, True, "", "")


def _was_started(container: Container, record: PodRecord) -> bool:
    state = record.containers[container.name]
    return state.attempt > 1 or state.stage is Stage.ENDED or probing.is_started(container, state)


def _condition(record: PodRecord, name: str, holds: bool, reason: str, message: str) -> Manifest:
    since = record.conditions.get(name, ("", record.accepted_at))[1]
    condition = {"type": name, "status": str(holds), "lastTransitionTime": rfc3339(since)}
    # Written out when empty too: conditions are merged by type, and an old reason must not outlive its cause.
    return condition | {"reason": reason, "message": message}


def _notes(record: PodRecord, notes: Mapping[str, str]) -> list[Manifest]:
    since = rfc3339(record.accepted_at)
    return [
        {"type": name, "status": "False", "lastTransitionTime": since, "reason": "NotInForce", "message": message}
        for name, message in sorted(notes.items())
    ]


def _container_status(pod: Pod, container: Container, record: PodRecord, image: str) -> Manifest:
    state = record.containers[container.name]
    status: Manifest = {
        "name": container.name,
        "image": image,
        "imageID": "",
        "ready": _ended_well(state) if container.role is Role.INIT else probing.is_ready(container, state),
        "started": probing.is_started(container, state),
        "restartCount": max(0, state.attempt - 1),
        "state": _state(pod, container, record, state),
        # ``lastState`` speaks of the attempt before the one in ``state``.
        "lastState": {},
    }
    if state.process is not None and state.stage is not Stage.STARTING:
        status["containerID"] = f"process://{state.process.pid}"
    last = state.end if "waiting" in status["state"] and state.end else state.last
    if last is not None:
        status["lastState"] = {"terminated": _terminated(last)}
    return status


def _state(pod: Pod, container: Container, record: PodRecord, state: ContainerRecord) -> Manifest:
    if state.stage is Stage.RUNNING:
        return {"running": {"startedAt": rfc3339(state.started_at)}}
    final = record.phase in ("Succeeded", "Failed") or record.gone
    if state.end is not None and (final or not _restarts(container, state)):
        return {"terminated": _terminated(state.end)}
    return {"waiting": _waiting(pod, container, record, state)}


def _restarts(container: Container, state: ContainerRecord) -> bool:
    code = state.end.exit_code if state.end else 0
    return container.restarts == "Always" or (container.restarts == "OnFailure" and code != 0)


def _waiting(pod: Pod, container: Container, record: PodRecord, state: ContainerRecord) -> dict[str, Any]:
    if state.wait_reason:
        return {"reason": state.wait_reason, "message": state.wait_message}
    if state.stage is Stage.ENDED:
        pause = state.backoff.pause_ms // 1000
        message = f"back-off {pause}s restarting failed container {container.name}" if pause else ""
        return {"reason": "CrashLoopBackOff", "message": message}
    before = [item for item in pod.of_role(Role.INIT) if not _ended_well(record.containers[item.name])]
    if container.role is Role.MAIN and before:
        return {"reason": "PodInitializing"}
    return {"reason": "ContainerCreating"}


def _ended_well(state: ContainerRecord) -> bool:
    return state.stage is Stage.ENDED and state.end is not None and state.end.exit_code == 0


def _terminated(end: Termination) -> Manifest:
    terminated: Manifest = {"exitCode": end.exit_code, "reason": end.reason}
    if end.exit_code > 128 and end.reason in ("Error", "OOMKilled"):
        terminated["signal"] = end.exit_code - 128
    if end.message:
        terminated["message"] = end.message
    if end.started_at:
        terminated["startedAt"] = rfc3339(end.started_at)
    terminated["finishedAt"] = rfc3339(end.finished_at)
    if end.pid:
        terminated["containerID"] = f"process://{end.pid}"
    return terminated
