"""Nodes that only pretend: their pods start, run for a while and end as their annotations say.

``simulate/duration`` on a pod makes it succeed that long after its start; ``simulate/start`` and ``simulate/termination``
override what holds for all. Without a duration a pod runs until somebody ends it.
"""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field

from cluster_gateway.domain.cluster import Cluster
from cluster_gateway.domain.reports import pod_gone, pod_status
from kube import Event, Key, Manifest, Object, parse_duration, parse_time, rfc3339
from kube.pods import PROBES, asked_probes

SIMULATED = "tidegate.dev/simulated"
LOST_NODE_MS = 40_000
"""How long the pods of a node that is gone stay bound."""


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """How simulated nodes behave. ``pod_start_ms`` None leaves starting (and readiness) to reports from outside.

    ``all_nodes`` makes every node a simulated one, annotated or not.
    """

    pod_start_ms: int | None = 0
    termination_ms: int = 0
    all_nodes: bool = False


@dataclass(slots=True)
class SimulatedNodes:
    """What is due when on the simulated nodes. All of it follows from the objects, so a restart loses nothing."""

    cluster: Cluster
    settings: SimulationSettings
    _due: list[tuple[int, int, str, Key, str]] = field(default_factory=list)
    _count: int = 0
    _running: dict[tuple[str, str], Manifest] = field(default_factory=dict)
    _bound: dict[str, dict[Key, None]] = field(default_factory=dict)
    _simulated: dict[str, bool] = field(default_factory=dict)
    """What was found about nodes so far; forgotten when one changes."""

    def begin(self, now: int) -> None:
        """Take up what the objects that are there tell: what was due, counted from when it began (to the second)."""
        for key, pod in self.cluster.store.of_kind("Pod").items():
            node = pod.spec.get("nodeName")
            if node:
                self._bound.setdefault(node, {})[key] = None
        for node in self._bound:
            self._resume_all(node, now)

    def fold(self, events: Iterable[Event], now: int) -> None:
        """Note what follows from what happened."""
        for event in events:
            if event.key.kind == "Pod":
                self._note_binding(event)
                if event.new is not None:
                    self._plan_pod(event.old, event.new, now)
            elif event.key.kind == "Node":
                self._simulated.pop(event.key.name, None)
                if event.old is None or event.new is None:
                    self._resume_all(event.key.name, now)

    def act(self, now: int) -> bool:
        """Do all that is due; whether there was anything."""
        acted = False
        while self._due and self._due[0][0] <= now:
            _, _, what, key, uid = heapq.heappop(self._due)
            pod = self.cluster.store.get(key)
            if pod is not None and pod.uid == uid:
                self._do(what, pod, now)
                acted = True
        return acted

    def deadline(self) -> int | None:
        """When something is due next."""
        return self._due[0][0] if self._due else None

    def is_simulated(self, node: str) -> bool:
        known = self._simulated.get(node)
        if known is None:
            found = self.cluster.store.get(Key("Node", "", node))
            known = self.settings.all_nodes or (found is not None and SIMULATED in found.annotations)
            self._simulated[node] = known
        return known

    def _note_binding(self, event: Event) -> None:
        if event.old is not None and event.new is not None and event.old.body is event.new.body:
            return
        old, new = (item.spec.get("nodeName") if item else None for item in (event.old, event.new))
        if old and old != new:
            self._bound.get(old, {}).pop(event.key, None)
        if new and self.cluster.store.get(event.key) is not None:
            self._bound.setdefault(new, {})[event.key] = None

    def _resume_all(self, node: str, now: int) -> None:
        """Plan what comes next for the pods of ``node`` as they stand; what is planned twice happens once."""
        pods = (self.cluster.store.objects[key] for key in self._bound.get(node, ()))
        if self.cluster.store.get(Key("Node", "", node)) is None:
            for pod in pods:
                self._plan(now + LOST_NODE_MS, "lost", pod)
        elif self.is_simulated(node):
            for pod in pods:
                self._resume(pod, now)

    def _resume(self, pod: Object, now: int) -> None:
        if pod.deleting:
            deleted = _moment(pod.metadata.get("deletionTimestamp"), now)
            deleted -= 1000 * int(pod.metadata.get("deletionGracePeriodSeconds") or 0)
            self._plan(deleted + self._milliseconds(pod, "termination", self.settings.termination_ms), "gone", pod)
        if pod.status.get("phase") == "Pending" and self.settings.pod_start_ms is not None:
            bound = _moment(_bound_at(pod) or pod.created, now)
            self._plan(bound + self._milliseconds(pod, "start", self.settings.pod_start_ms), "start", pod)
        if pod.status.get("phase") == "Running" and "simulate/duration" in pod.annotations:
            started = _moment(pod.status.get("startTime"), now)
            self._plan(started + self._milliseconds(pod, "duration", 0), "succeed", pod)

    def _plan(self, at: int, what: str, pod: Object) -> None:
        self._count += 1
        heapq.heappush(self._due, (at, self._count, what, pod.key, pod.uid))

    def _plan_pod(self, old: Object | None, pod: Object, now: int) -> None:
        node = pod.spec.get("nodeName")
        if not node or not self.is_simulated(node):
            return
        known = old if old is not None and old.uid == pod.uid else None
        if pod.deleting and not (known and known.deleting):
            self._plan(now + self._milliseconds(pod, "termination", self.settings.termination_ms), "gone", pod)
        phase, before = pod.status.get("phase"), known.status.get("phase") if known else None
        if phase == "Pending" and not (known and known.spec.get("nodeName")):
            start = self.settings.pod_start_ms
            if start is not None:
                self._plan(now + self._milliseconds(pod, "start", start), "start", pod)
        if phase == "Running" and before != "Running" and "simulate/duration" in pod.annotations:
            self._plan(now + self._milliseconds(pod, "duration", 0), "succeed", pod)

    def _do(self, what: str, pod: Object, now: int) -> None:
        node, phase = str(pod.spec.get("nodeName")), pod.status.get("phase")
        if self.cluster.store.get(Key("Node", "", node)) is None:
            if what == "lost":
                self.cluster.actor = "cluster_gateway"
                self.cluster.gone(pod)
        elif what == "start" and phase == "Pending" and not pod.deleting:
            pod_status(self.cluster, node, pod.key, pod.uid, self._running_status(pod, now))
        elif what == "succeed" and phase == "Running" and not pod.deleting:
            pod_status(self.cluster, node, pod.key, pod.uid, ended_status(pod, "Succeeded", 0, "Completed", now))
        elif what == "gone":
            pod_gone(self.cluster, node, pod)

    def _running_status(self, pod: Object, now: int) -> Manifest:
        """The status of a pod that starts: one object for all pods with the same container names at one time."""
        at = rfc3339(now)
        names = [container.get("name", "") for container in pod.spec.get("containers") or ()]
        asked = tuple(asked_probes(pod.annotations)) if PROBES in pod.annotations else ()
        key = (at, "/".join((*names, *asked)))
        if key not in self._running:
            self._running = {key: running_status(names, True, at, asked=asked)}
        return self._running[key]

    def _milliseconds(self, pod: Object, name: str, otherwise: int) -> int:
        try:
            return parse_duration(str(pod.annotations[f"simulate/{name}"]))
        except (KeyError, ValueError):
            return otherwise


def _bound_at(pod: Object) -> str:
    conditions = pod.status.get("conditions") or ()
    return next((str(item.get("lastTransitionTime")) for item in conditions if item.get("type") == "PodScheduled"), "")


def _moment(text: object, otherwise: int) -> int:
    try:
        return parse_time(str(text))
    except ValueError:
        return otherwise


def running_status(
    containers: list[str], ready: bool, at: str, restarts: int = 0, asked: Iterable[str] = ()
) -> Manifest:
    """The status of a pod whose containers run since ``at``; ``asked`` are the conditions that tell of asked probes.

    There is no socket to ask: a pod that is ready answers whatever it is asked.
    """
    truth = "True" if ready else "False"
    conditions = [
        {"type": kind, "status": truth, "lastTransitionTime": at} for kind in ("ContainersReady", "Ready", *asked)
    ]
    statuses = [
        {"name": name, "ready": ready, "restartCount": restarts, "state": {"running": {"startedAt": at}}}
        for name in containers
    ]
    return {"phase": "Running", "startTime": at, "conditions": conditions, "containerStatuses": statuses}


def ended_status(pod: Object, phase: str, exit_code: int, reason: str, now: int) -> Manifest:
    """The status of a pod whose containers have ended with ``exit_code``."""
    at = rfc3339(now)
    conditions = [{"type": kind, "status": "False", "lastTransitionTime": at} for kind in ("ContainersReady", "Ready")]
    before = {status.get("name"): status for status in pod.status.get("containerStatuses") or ()}
    ended = {"exitCode": exit_code, "reason": reason, "finishedAt": at}
    statuses = [
        {
            "name": container.get("name", ""),
            "ready": False,
            "restartCount": before.get(container.get("name"), {}).get("restartCount", 0),
            "state": {"terminated": ended},
        }
        for container in pod.spec.get("containers") or ()
    ]
    return {"phase": phase, "conditions": conditions, "containerStatuses": statuses}
