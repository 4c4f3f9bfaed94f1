"""Pods that are not to be moved at all, whatever else happens: who they are, what they hold, whose only one they are."""

from dataclasses import dataclass

from descheduler.domain.cluster.gangs import Gangs
from descheduler.domain.cluster.pod_traits import EVICTION_COST, NEVER, is_active, node_of, whole
from descheduler.domain.cluster.workloads import Workload, Workloads
from descheduler.domain.migration.limits import most_migrating, most_unavailable
from descheduler.domain.policy.migration_args import MigrationArgs
from kube import Key, Object
from kube.pods import is_finished
from kube.selectors import matches

BYPASS = "descheduler.alpha.kubernetes.io/evict"
MIRROR = "kubernetes.io/config.mirror"
PREEMPTABLE = "volcano.sh/preemptable"
CRITICAL = 2_000_000_000
_SYSTEM = "kube-system"


@dataclass(frozen=True, slots=True)
class Protection:
    """Rules that do not change while a job waits: who is refused once is refused for good."""

    args: MigrationArgs
    workloads: Workloads
    gangs: Gangs

    def refusal(self, pod: Object) -> str:
        """Why ``pod`` may not be moved, in words; empty when it may. A pod that says so itself is moved in any case."""
        if pod.deleting:
            return "it is being deleted already"
        if not node_of(pod):
            return "it is on no node"
        workload = self.workloads.of(pod)
        if workload is not None and workload.kind in ("DaemonSet.apps", "Node"):
            return f"it belongs to its node, as pods of a {workload.kind.partition('.')[0]} do"
        if MIRROR in pod.annotations:
            return "it belongs to its node, as static pods do"
        if BYPASS in pod.annotations:
            return ""
        return (
            self._by_itself(pod)
            or self._by_storage(pod)
            or self.args.scope.obstacle(pod, self.args.skipped)
            or self._by_owner(pod, workload)
            or self.gangs.obstacle(pod)
        )

    def _by_itself(self, pod: Object) -> str:
        if whole(pod.annotations.get(EVICTION_COST)) >= NEVER:
            return f"its {EVICTION_COST} says that it is never evicted"
        if "false" in (pod.annotations.get(PREEMPTABLE), pod.labels.get(PREEMPTABLE)):
            return f"{PREEMPTABLE} is false"
        critical = (pod.spec.get("priority") or 0) >= CRITICAL or pod.namespace == _SYSTEM
        if critical and not (self.args.system_critical or "SystemCritical" in self.args.skipped):
            return "it is critical to the system"
        node, selector = self.workloads.store.get(Key("Node", "", node_of(pod))), self.args.node_selector
        if selector is not None and not matches(selector, node.labels if node is not None else {}):
            return f"{node_of(pod)} is not among the nodes that are looked at"
        names = self.args.scheduler_names
        if names and str(pod.spec.get("schedulerName") or "") not in names:
            return f"its scheduler {pod.spec.get('schedulerName')} is not one of {', '.join(names)}"
        return ""

    def _by_storage(self, pod: Object) -> str:
        volumes = pod.spec.get("volumes") or ()
        local = any("emptyDir" in volume or "hostPath" in volume for volume in volumes)
        if local and not (self.args.local_storage or "LocalStorage" in self.args.skipped):
            return "it would lose what it keeps on its node"
        claims = any("persistentVolumeClaim" in volume for volume in volumes)
        if claims and self.args.spares_claims and "PVC" not in self.args.skipped:
            return "it has a volume claim"
        return ""

    def _by_owner(self, pod: Object, workload: Workload | None) -> str:
        failed = pod.status.get("phase") == "Failed"
        if workload is None:
            may = self.args.bare or "BarePods" in self.args.skipped or (failed and self.args.failed_bare)
            return "" if may else "nobody would make it again"
        if is_finished(pod) or self.args.any_replicas or "ExpectedReplicas" in self.args.skipped:
            return ""
        replicas = self.workloads.expected(workload)
        if replicas < self.args.min_replicas:
            return f"{workload} has {replicas} replicas, and pods of fewer than {self.args.min_replicas} are not moved"
        migrating, unavailable = most_migrating(self.args, replicas), most_unavailable(self.args, replicas)
        if is_active(pod) and (replicas <= 1 or replicas in (migrating, unavailable)):
            return (
                f"{workload} has {replicas} replicas, of which {migrating} may migrate and {unavailable} be "
                "unavailable: it would be left without any"
            )
        return ""
