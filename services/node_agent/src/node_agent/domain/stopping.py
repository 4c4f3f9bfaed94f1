"""How containers are brought to their end: the preStop hook, SIGTERM, and SIGKILL when the grace is used up.

Main and init containers end together, sidecars after them, the last one first. The pod's grace holds for all of it; once
it is used up everything is killed.
"""

from dataclasses import replace

from node_agent.domain.containers import Container, Pod, Role
from node_agent.domain.records import ContainerRecord, Halt, PodRecord, Stage, Stop

# A preStop hook that uses the whole grace leaves this much for SIGTERM, as with a kubelet.
AFTER_HOOK_MS = 2_000

VERBS = {Halt.HOOK: "PRE_STOP", Halt.TERM: "TERMINATE", Halt.KILL: "KILL"}
"""The action that goes with each step towards the end."""


def told_to_stop(record: PodRecord, grace_seconds: int, now: int) -> PodRecord:
    """The pod is deleted, or deleted again with a shorter grace; a longer one changes nothing."""
    grace_ms, stop = grace_seconds * 1000, record.stop
    if stop is None or stop.reason:
        return replace(record, stop=Stop(now, grace_ms))
    if stop.grace_ms <= grace_ms:
        return record
    return replace(record, stop=replace(stop, grace_ms=grace_ms))


NODE_SHUTDOWN = "NodeShutdown"


def shut_down(record: PodRecord, grace_seconds: int, now: int) -> PodRecord:
    """The record of a pod that ends because its node does: it has failed, unless it was to go or was over anyway."""
    if record.stop is not None or record.phase in ("Succeeded", "Failed"):
        return record
    return replace(
        record, stop=Stop(now, grace_seconds * 1000, NODE_SHUTDOWN, "the node was shut down while the pod ran")
    )


def deadline(pod: Pod, record: PodRecord, now: int) -> int:
    """When the time of a pod that is told to stop is used up."""
    stop = record.stop
    return stop.since + stop.grace_ms if stop else now + pod.grace_seconds * 1000


def to_end(pod: Pod, record: PodRecord, now: int, limit: int) -> tuple[Container, ...]:
    """The running containers whose turn it is to end: all once ``limit`` is reached, else sidecars one by one at last."""
    running = [item for item in pod.containers if record.containers[item.name].stage is Stage.RUNNING]
    first = [item for item in running if item.role is not Role.SIDECAR]
    if now >= limit:
        return tuple(running)
    if first or any(record.containers[item.name].alive for item in pod.containers if item.role is not Role.SIDECAR):
        return tuple(first)
    return tuple(running[-1:])


def advance(container: Container, state: ContainerRecord, limit: int, now: int) -> ContainerRecord:
    """The next step towards the end of a running container, at ``now``; the same object when it is to be waited."""
    if state.halt is Halt.NONE:
        if container.pre_stop is not None and limit > now:
            return replace(state, halt=Halt.HOOK, hooking=True, halt_deadline=limit)
        return _terminate(state, limit, now)
    if limit < state.halt_deadline and state.halt_deadline - now > AFTER_HOOK_MS:
        # The grace was shortened. What is left after a hook that took too long is none of it, and stays.
        state = replace(state, halt_deadline=max(limit, now))
    if state.halt is Halt.HOOK:
        if not state.hooking:
            return _terminate(state, state.halt_deadline, now)
        if now >= state.halt_deadline:
            return _terminate(state, now + AFTER_HOOK_MS, now)
    if state.halt is Halt.TERM and now >= state.halt_deadline:
        return replace(state, halt=Halt.KILL)
    return state


def _terminate(state: ContainerRecord, limit: int, now: int) -> ContainerRecord:
    halt = Halt.TERM if limit > now else Halt.KILL
    return replace(state, halt=halt, hooking=False, halt_deadline=limit)
