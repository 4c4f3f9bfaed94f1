"""Kueue's objects by name, and where a workload belongs by them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from kube import Event, Object
from kube.selectors import matches
from queue_manager.domain.cluster_queue import (
    CLUSTER_QUEUE,
    COHORT,
    FLAVOR,
    LOCAL_QUEUE_KIND,
    NONE,
    PRIORITY,
    TOPOLOGY,
    WORK_PRIORITY,
    ClusterQueue,
    Cohort,
    Flavor,
    LocalQueue,
    read_cluster_queue,
    read_cohort,
    read_flavor,
    read_local_queue,
    read_topology,
)
from queue_manager.domain.flavor_choice import Mode, Verdict, WaitReason
from queue_manager.domain.workload import Workload


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
        if not matches(queue.selector, self.namespaces.get(space, {"kubernetes.io/metadata.name": space})):
            return _no(WaitReason.MISCONFIGURED, f"ClusterQueue {queue.name} does not select the namespace {space}")
        if not workload.ready:
            return _no(WaitReason.EVALUATING, "what it needs is not known before its pods are there")
        return None


def _no(reason: WaitReason, message: str) -> Verdict:
    return Verdict(Mode.NO_FIT, reason=reason, message=message)
