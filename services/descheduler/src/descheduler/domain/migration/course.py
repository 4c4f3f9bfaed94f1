"""What is next for a migration that has begun: one step at a time, each told from the facts alone.

Koordinator's order: the reservation stands, on another node; the pod is evicted; another pod takes the reservation and becomes
ready. Without a reservation: the pod is evicted, and gone.
"""

from dataclasses import dataclass

from descheduler.domain.cluster.fitting import takes_pods
from descheduler.domain.cluster.pod_traits import is_active, node_of
from descheduler.domain.cluster.workloads import serves
from descheduler.domain.migration import job_changes
from descheduler.domain.migration.arbiter import Arbiter
from descheduler.domain.migration.job import BOUND, EVICTION, READY, SCHEDULED, Migration
from descheduler.domain.migration.successors import successor
from descheduler.domain.policy.migration_args import MigrationArgs
from kube import Decision, Key, Manifest, Object, Store
from kube.node_choice import may_run
from kube.pods import is_finished


@dataclass(frozen=True, slots=True)
class Course:
    """One look at one job gives at most one decision."""

    args: MigrationArgs
    store: Store
    arbiter: Arbiter
    now: int

    def step(self, job: Migration) -> Decision | None:
        """What is to happen to a job that has begun; None while it has to wait."""
        if job.ends_at <= self.now:
            lasted = f"{job.ttl_ms // 1000} s"
            why = str(job.item.status.get("message") or "")
            return job_changes.failed(job, "Timeout", f"not done within {lasted}: {why}".rstrip(": "), self.now)
        pod = self.pod_of(job)
        if job.evicted_at is None and (pod is None or not (is_active(pod) or is_finished(pod))):
            message = f"pod {job.pod.namespace}/{job.pod.name} is gone"
            return job_changes.failed(job, "MissingPod", message, self.now)
        if job.direct:
            return self._evict(job, pod) if job.evicted_at is None else self._gone(job, pod)
        return self._reserved(job, pod)

    def pod_of(self, job: Migration) -> Object | None:
        """The very pod that the job is about; another one of the name is not it."""
        pod = self.store.get(job.pod)
        return pod if pod is not None and job.pod_uid in ("", pod.uid) else None

    def _gone(self, job: Migration, pod: Object | None) -> Decision | None:
        if pod is not None:
            return None
        message = f"pod {job.pod.namespace}/{job.pod.name} was evicted from {job.left_node}"
        told = job_changes.condition(EVICTION, "True", "EvictComplete", message, self.now)
        return job_changes.succeeded(job, [told], message, None)

    def _reserved(self, job: Migration, pod: Object | None) -> Decision | None:
        item = self.store.get(job.reservation)
        if item is None:
            message = f"reservation {job.reservation.name} is gone"
            return job_changes.failed(job, "MissingReservation", message, self.now)
        phase, node = str(item.status.get("phase") or ""), str(item.status.get("nodeName") or "")
        if phase == "Failed" and job.evicted_at is None:
            message = f"reservation {item.name} is over before the pod could move"
            return job_changes.failed(job, "ReservationExpired", message, self.now)
        came = successor(self.store, job)
        if job.evicted_at is not None:
            return self._followed(job, item, pod, came)
        if came is not None or phase == "Succeeded":
            message = f"reservation {item.name} was taken by another pod of the controller"
            return job_changes.failed(job, "MissingReservation", message, self.now)
        if phase != "Available" or not node:
            return self._unscheduled(job, item)
        assert pod is not None
        if node == node_of(pod):
            message = f"reservation {item.name} stands on {node}, where the pod is already"
            return job_changes.failed(job, "ForbiddenMigratePod", message, self.now)
        told = job_changes.condition(SCHEDULED, "True", "", f"room is reserved on {node}", self.now)
        if job.condition(SCHEDULED).get("status") != "True":
            return job_changes.observed(job, told, self.now, nodeName=node)
        return self._evict(job, pod)

    def _unscheduled(self, job: Migration, item: Object) -> Decision | None:
        told = _condition(item, "Scheduled")
        why = str(told.get("message") or "it has no place yet")
        if not told:
            return None
        return job_changes.observed(
            job, job_changes.condition(SCHEDULED, "False", "Unschedulable", why, self.now), self.now
        )

    def _evict(self, job: Migration, pod: Object | None) -> Decision | None:
        assert pod is not None
        refusal = self.arbiter.refusal(pod)
        if refusal:
            message = f"pod {pod.namespace}/{pod.name} is not moved any more: {refusal}"
            return job_changes.failed(job, "ForbiddenMigratePod", message, self.now)
        why = "" if is_finished(pod) else self._closed(job) or self.arbiter.hold_eviction(pod)
        if why:
            told = job_changes.condition(EVICTION, "False", "Waiting", why, self.now)
            return job_changes.observed(job, told, self.now)
        if not self.arbiter.evict(pod):
            return None
        where = self.store.get(job.reservation) if not job.direct else None
        towards = f"; {where.status.get('nodeName')} has room for it" if where is not None else ""
        asked = f"{job.strategy}: " if job.strategy else ""
        message = f"{asked}pod {pod.namespace}/{pod.name} leaves {node_of(pod)}{towards}"
        return job_changes.evicted(job, pod, self.args, message, self.now)

    def _closed(self, job: Migration) -> str:
        """Why the node that has room for the pod would not take it any more; empty where it would, and where none is reserved."""
        item = self.store.get(job.reservation) if not job.direct else None
        if item is None:
            return ""
        name = str(item.status.get("nodeName") or "")
        node = self.store.get(Key("Node", "", name))
        if node is None or not takes_pods(node):
            return f"{name} takes no pods any more"
        template: Manifest = item.spec.get("template") or {}
        return "" if may_run(template.get("spec") or {}, node) else f"{name} does not suit the pod any more"

    def _followed(self, job: Migration, item: Object, pod: Object | None, came: Object | None) -> Decision | None:
        """After the eviction: the pod goes, another one takes the room, and becomes ready."""
        if pod is not None:
            return None
        if job.condition(EVICTION).get("status") != "True":
            message = f"pod {job.pod.name} has left {job.left_node}"
            told = job_changes.condition(EVICTION, "True", "EvictComplete", message, self.now)
            return job_changes.observed(job, told, self.now, status="WaitForPodBindReservation")
        if came is None:
            return None
        if job.condition(BOUND).get("status") != "True":
            message = f"pod {came.name} takes reservation {item.name} on {node_of(came)}"
            told = job_changes.condition(BOUND, "True", "WaitForBoundPodReady", message, self.now)
            return job_changes.observed(job, told, self.now, status="WaitForBoundPodReady")
        if not serves(came):
            return None
        message = f"pod {job.pod.name} has moved from {job.left_node} to {node_of(came)} as {came.name}"
        told = job_changes.condition(READY, "True", "Complete", message, self.now)
        return job_changes.succeeded(job, [told], message, came)


def _condition(item: Object, kind: str) -> Manifest:
    listed = item.status.get("conditions") or ()
    return next((one for one in listed if one.get("type") == kind), {})
