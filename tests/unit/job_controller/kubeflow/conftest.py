"""Fixtures of the Kubeflow kinds' tests: the pretending cluster, with the batch/v1 Jobs that its gateway would run."""

from collections.abc import Callable
from typing import Any

import pytest

from kube import Event, Manifest, Object, rfc3339


@pytest.fixture
def make_batch_cluster(make_cluster: Callable[..., Any]) -> Callable[..., Any]:
    """Makes clusters that also run batch/v1 Jobs, each pod named ``<job>-<index>-<attempt>``."""

    class BatchCluster(make_cluster):  # type: ignore[misc, valid-type]
        def end_job(self, name: str, outcome: str, reason: str = "", message: str = "") -> None:
            """A Job comes to its end, as its controller says it."""
            condition = {
                "type": outcome,
                "status": "True",
                "reason": reason,
                "message": message,
                "lastTransitionTime": rfc3339(self.now),
            }
            status: Manifest = {"conditions": [condition], "active": 0, "ready": 0}
            self.patch_status(f"Job.batch/{name}", status | ({"succeeded": 1} if outcome == "Complete" else {}))

        def condition(self, ref: str, kind: str) -> Manifest:
            """A condition of an object, {} where it has none of that type."""
            found = self.get(ref).status.get("conditions") or []
            return next((one for one in found if one["type"] == kind), {})

        def _pretend_about(self, item: Object) -> list[Event]:
            events: list[Event] = super()._pretend_about(item)
            if events or item.kind != "Job.batch":
                return events
            return self._run_job(item)

        def _run_job(self, job: Object) -> list[Event]:
            pods = [pod for pod in self.store.owned_by(job.uid) if pod.kind == "Pod" and not pod.deleting]
            live = [pod for pod in pods if pod.status.get("phase") in ("Pending", "Running")]
            ended = any(one["status"] == "True" for one in job.status.get("conditions") or [])
            if ended or job.spec.get("suspend"):
                gone = [event for pod in live for event in self._delete(pod.key)]
                return gone or self._say(job, {"active": 0, "ready": 0} if not ended else {})
            made = self._missing_pods(job, pods)
            return made or self._count(job, pods, live)

        def _missing_pods(self, job: Object, pods: list[Object]) -> list[Event]:
            taken = {pod.name.split("-")[-2] for pod in pods if pod.status.get("phase") != "Failed"}
            failed = sum(pod.status.get("phase") == "Failed" for pod in pods)
            wanted = [str(index) for index in range(job.spec.get("completions", 1))]
            return [self._put(self._pod(job, index, failed)) for index in wanted if index not in taken]

        def _pod(self, job: Object, index: str, attempt: int) -> Manifest:
            template = job.spec["template"]
            metadata = template.get("metadata") or {}
            note = {"batch.kubernetes.io/job-completion-index": index}
            owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job.name, "uid": job.uid, "controller": True}
            return {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": f"{job.name}-{index}-{attempt}",
                    "labels": metadata.get("labels") or {},
                    "annotations": {**(metadata.get("annotations") or {}), **note},
                    "ownerReferences": [owner],
                },
                "spec": template["spec"],
            }

        def _count(self, job: Object, pods: list[Object], live: list[Object]) -> list[Event]:
            phases = [pod.status.get("phase") for pod in pods]
            counts = {name: phases.count(name.capitalize()) for name in ("succeeded", "failed")}
            done = counts["succeeded"] >= job.spec.get("completions", 1)
            status: Manifest = {**counts, "active": len(live), "ready": phases.count("Running")}
            if done:
                moment = rfc3339(self.now)
                status["conditions"] = [{"type": "Complete", "status": "True", "lastTransitionTime": moment}]
            return self._say(job, status)

        def _say(self, job: Object, status: Manifest) -> list[Event]:
            wanted = {**job.status, **status}
            return [self.store.put(job.changed(status=wanted))] if wanted != job.status else []

    return BatchCluster


@pytest.fixture
def cluster(make_batch_cluster: Callable[..., Any]) -> Any:
    """A cluster in which pods run as soon as they are made, and Jobs make theirs."""
    return make_batch_cluster()
