"""Kueue's objects by name, and where a workload belongs by them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from kube import Event, Object, rfc3339
from kube.selectors import matches
from kube.words import counted
from queue_manager.domain.cohorts.flavor_choice import Mode, Verdict, WaitReason
from queue_manager.domain.quotas.cluster_queue import (
    CHECK,
    CLUSTER_QUEUE,
    COHORT,
    FLAVOR,
    LOCAL_QUEUE_KIND,
    NONE,
    PRIORITY,
    TOPOLOGY,
    WORK_PRIORITY,
    Check,
    ClusterQueue,
    Cohort,
    Flavor,
    LocalQueue,
    read_check,
    read_cluster_queue,
    read_cohort,
    read_flavor,
    read_local_queue,
    read_topology,
)
from queue_manager.domain.workloads.workload import Workload


@dataclass(slots=True)
class QueueObjects:
    """Every object of the kinds that say who has which quota."""

    queues: dict[str, ClusterQueue] = field(default_factory=dict)
    cohorts: dict[str, Cohort] = field(default_factory=dict)
    local: dict[tuple[str, str], LocalQueue] = field(default_factory=dict)
    flavors: dict[str, Flavor] = field(default_factory=dict)
    topologies: dict[str, tuple[str, ...]] = field(default_factory=dict)
    namespaces: dict[str, dict[str, str]] = field(default_factory=dict)
    priorities: dict[str, int] = field(default_factory=dict)
    classes: dict[str, int] = field(default_factory=dict)
    """The value of every PriorityClass, which counts where a group names no WorkloadPriorityClass."""
    checks: dict[str, Check] = field(default_factory=dict)
    now: int = 0
    """The time that it is, in milliseconds since the epoch."""
    renewed: bool = False
    """Whether objects changed since the trees were made."""

    def fold_object(self, event: Event) -> None:
        """Take in a change of one of Kueue's objects or of a namespace."""
        key, new = event.key, event.new
        table, read = self._table(key.kind)
        name: Any = key[1:] if key.kind == LOCAL_QUEUE_KIND else key.name
        before = table.get(name)
        after = read(new) if new is not None else None
        if before == after:
            return
        if after is None:
            del table[name]
        else:
            table[name] = after
        self.renewed = True

    def _table(self, kind: str) -> tuple[dict[Any, Any], Callable[[Object], Any]]:
        tables: dict[str, tuple[dict[Any, Any], Callable[[Object], Any]]] = {
            CLUSTER_QUEUE: (self.queues, read_cluster_queue),
            COHORT: (self.cohorts, read_cohort),
            LOCAL_QUEUE_KIND: (self.local, read_local_queue),
            FLAVOR: (self.flavors, read_flavor),
            TOPOLOGY: (self.topologies, read_topology),
            PRIORITY: (self.classes, lambda item: int(item.body.get("value") or 0)),
            CHECK: (self.checks, read_check),
            WORK_PRIORITY: (self.priorities, lambda item: int(item.body.get("value") or 0)),
            "Namespace": (self.namespaces, lambda item: {"kubernetes.io/metadata.name": item.name, **item.labels}),
        }
        return tables[kind]

    def resolve(self) -> None:
        """Let every flavor know the levels of its topology."""
        for name, flavor in self.flavors.items():
            self.flavors[name] = replace(flavor, levels=self.topologies.get(flavor.topology))

    def queue_of(self, workload: Workload) -> str:
        """The ClusterQueue that its LocalQueue leads to, "" for none."""
        local = self.local.get((workload.key.namespace, workload.local_queue))
        return local.cluster_queue if local is not None else ""

    def unanswered(self, queue: ClusterQueue) -> tuple[str, str] | None:
        """Why an admission check of the queue will not be answered: Kueue's reason, and a sentence. None if all may be."""
        missing = [name for name, _ in queue.checks if name not in self.checks]
        if missing:
            text = f"ClusterQueue {queue.name} needs the AdmissionCheck {missing[0]}, which does not exist"
            return "AdmissionCheckNotFound", text
        failing = next((self.checks[name] for name, _ in queue.checks if self.checks[name].fails), None)
        if failing is not None:
            return "AdmissionCheckInactive", f"AdmissionCheck {failing.name} does not work: {failing.fails}"
        return None

    def outside(self, workload: Workload, local: LocalQueue | None) -> Verdict | None:
        """Why the workload is in no line at all."""
        space = workload.key.namespace
        if local is None:
            return _no(WaitReason.MISCONFIGURED, f"LocalQueue {space}/{workload.local_queue} does not exist")
        queue = self.queues.get(local.cluster_queue)
        if queue is None:
            return _no(WaitReason.MISCONFIGURED, f"ClusterQueue {local.cluster_queue} does not exist")
        if local.stop != NONE:
            return _no(WaitReason.SUSPENDED, f"LocalQueue {space}/{local.name} is stopped")
        if queue.stop != NONE:
            return _no(WaitReason.SUSPENDED, f"ClusterQueue {queue.name} is stopped")
        unanswered = self.unanswered(queue)
        if unanswered is not None:
            return _no(WaitReason.MISCONFIGURED, unanswered[1])
        if not matches(queue.selector, self.namespaces.get(space, {"kubernetes.io/metadata.name": space})):
            return _no(WaitReason.MISCONFIGURED, f"ClusterQueue {queue.name} does not select the namespace {space}")
        if not workload.account.active:
            return _no(WaitReason.INACTIVE, f"Workload {_name(workload)} is deactivated; set spec.active to true")
        if workload.account.resume_at > self.now:
            account = workload.account
            text = f"was sent away {counted(account.attempts, 'time')} and comes back at {rfc3339(account.resume_at)}"
            return _no(WaitReason.BACKING_OFF, text)
        if not workload.ready:
            return _no(WaitReason.EVALUATING, "what it needs is not known before its pods are there")
        return None


def _name(workload: Workload) -> str:
    return workload.account.key.name if workload.account.key is not None else workload.key.name


def _no(reason: WaitReason, message: str) -> Verdict:
    return Verdict(Mode.NO_FIT, reason=reason, message=message)
