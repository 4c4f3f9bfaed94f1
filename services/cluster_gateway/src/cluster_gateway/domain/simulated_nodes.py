"""Nodes that only pretend: their pods start, run for a while and end as their annotations say.

``simulate/duration`` on a pod makes it succeed that long after its start; ``simulate/start`` and ``simulate/termination``
override what holds for all. Without a duration a pod runs until somebody ends it.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from cluster_gateway.domain.cluster import Cluster
from cluster_gateway.domain.reports import pod_gone, pod_status
from kube import Event, Key, Manifest, Object, are_alike, parse_duration, parse_time, rfc3339, runs
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
    _due: list[tuple[int, int, str, tuple[tuple[Key, str], ...]]] = field(default_factory=list)
    """When, counted, what, and the keys and uids of the pods to which it happens."""
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
        for run in runs(events):
            kind = run[0].key.kind
            if kind == "Pod":
                self._note_bindings(run)
                self._plan_pods(run, now)
            elif kind == "Node":
                for event in run:
                    self._simulated.pop(event.key.name, None)
                    if event.old is None or event.new is None:
                        self._resume_all(event.key.name, now)

    def act(self, now: int) -> bool:
        """Do all that is due; whether there was anything."""
        acted = False
        while self._due and self._due[0][0] <= now:
            _, _, what, members = heapq.heappop(self._due)
            pods = [pod for key, uid in members if (pod := self.cluster.store.get(key)) is not None and pod.uid == uid]
            if what == "start" and pods and are_alike(pods):
                self._start(pods, now)
            else:
                for pod in pods:
                    self._do(what, pod.key, now)
            acted = acted or bool(pods)
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

    def _note_bindings(self, run: Sequence[Event]) -> None:
        old, new = run[0].old, run[0].new
        if old is not None and new is not None and old.body is new.body:
            return
        if old is not None and old.spec.get("nodeName"):
            for event in run:
                before, after = (item.spec.get("nodeName") if item else None for item in (event.old, event.new))
                if before != after:
                    self._bound.get(str(before), {}).pop(event.key, None)
        if new is not None and new.spec.get("nodeName"):
            there = self.cluster.store.of_kind("Pod")
            for event in run:
                if event.new is not None and event.key in there:
                    self._bound.setdefault(event.new.spec["nodeName"], {})[event.key] = None

    def _resume_all(self, node: str, now: int) -> None:
        """Plan what comes next for the pods of ``node`` as they stand; what is planned twice happens once."""
        pods = (self.cluster.store.objects[key] for key in self._bound.get(node, ()))
        if self.cluster.store.get(Key("Node", "", node)) is None:
            for pod in pods:
                self._plan(now + LOST_NODE_MS, "lost", [pod])
        elif self.is_simulated(node):
            for pod in pods:
                self._resume(pod, now)

    def _resume(self, pod: Object, now: int) -> None:
        if pod.deleting:
            deleted = _moment(pod.metadata.get("deletionTimestamp"), now)
            deleted -= 1000 * int(pod.metadata.get("deletionGracePeriodSeconds") or 0)
            self._plan(deleted + self._milliseconds(pod, "termination", self.settings.termination_ms), "gone", [pod])
        if pod.status.get("phase") == "Pending" and self.settings.pod_start_ms is not None:
            bound = _moment(_bound_at(pod) or pod.created, now)
            self._plan(bound + self._milliseconds(pod, "start", self.settings.pod_start_ms), "start", [pod])
        if pod.status.get("phase") == "Running" and "simulate/duration" in pod.annotations:
            started = _moment(pod.status.get("startTime"), now)
            self._plan(started + self._milliseconds(pod, "duration", 0), "succeed", [pod])

    def _plan(self, at: int, what: str, pods: Sequence[Object]) -> None:
        self._count += 1
        heapq.heappush(self._due, (at, self._count, what, tuple((pod.key, pod.uid) for pod in pods)))

    def _plan_pods(self, run: Sequence[Event], now: int) -> None:
        plans = list(self._next_steps(run[0]))
        if not plans:
            return
        pods = [event.new for event in run if event.new is not None]
        simulated = [pod for pod in pods if self.is_simulated(str(pod.spec["nodeName"]))]
        for delay, what in plans if simulated else ():
            self._plan(now + delay, what, simulated)

    def _next_steps(self, event: Event) -> Iterator[tuple[int, str]]:
        """In how many milliseconds what happens to a pod because of what it became, if its node is a simulated one."""
        pod = event.new
        if pod is None or not pod.spec.get("nodeName"):
            return
        known = event.old if event.old is not None and event.old.uid == pod.uid else None
        if pod.deleting and not (known and known.deleting):
            yield self._milliseconds(pod, "termination", self.settings.termination_ms), "gone"
        phase, before = pod.status.get("phase"), known.status.get("phase") if known else None
        start = self.settings.pod_start_ms
        if phase == "Pending" and not (known and known.spec.get("nodeName")) and start is not None:
            yield self._milliseconds(pod, "start", start), "start"
        if phase == "Running" and before != "Running" and "simulate/duration" in pod.annotations:
            yield self._milliseconds(pod, "duration", 0), "succeed"

    def _start(self, pods: Sequence[Object], now: int) -> None:
        """Pods that are alike start."""
        if pods[0].status.get("phase") != "Pending" or pods[0].deleting:
            return
        names = [str(pod.spec["nodeName"]) for pod in pods]
        there = {name for name in set(names) if self.cluster.store.get(Key("Node", "", name)) is not None}
        starting = [(pod, f"node/{name}") for pod, name in zip(pods, names, strict=True) if name in there]
        if starting:
            status = self._running_status(pods[0], now)
            self.cluster.set_statuses([pod for pod, _ in starting], status, [actor for _, actor in starting])

    def _do(self, what: str, key: Key, now: int) -> None:
        pod = self.cluster.store.get(key)
        if pod is None:
            return
        node, phase = str(pod.spec.get("nodeName")), pod.status.get("phase")
        if self.cluster.store.get(Key("Node", "", node)) is None:
            if what == "lost":
                self.cluster.actor = "cluster_gateway"
                self.cluster.gone(pod)
        elif what == "start":
            self._start((pod,), now)
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
