"""What is listed beside an object."""

from typing import Any, cast

from kube import Manifest, kind_id
from tidegate.client import SyncClient
from tidegate_cli.ownership import belonging_to, pods_of


class Cluster:
    """A client that knows a few objects, and notes the field selectors that it was asked with."""

    def __init__(self, *manifests: Manifest) -> None:
        self._manifests = manifests
        self.selectors: list[str] = []

    def list(self, kind: str, namespace: str = "", *, field_selector: str = "", **options: Any) -> list[Manifest]:
        self.selectors.append(field_selector)
        return [one for one in self._manifests if kind_id(one["apiVersion"], one["kind"]) == kind]


def item(api: str, kind: str, name: str, owner: str = "") -> Manifest:
    owners = [{"uid": owner, "controller": True}] if owner else []
    metadata = {"name": name, "namespace": "default", "uid": name, "ownerReferences": owners}
    return {"apiVersion": api, "kind": kind, "metadata": metadata}


def test_the_pods_of_an_mpi_job_are_its_workers_and_that_of_its_launcher() -> None:
    job, launcher = item("kubeflow.org/v2beta1", "MPIJob", "pi"), item("batch/v1", "Job", "pi-launcher", "pi")
    pods = [item("v1", "Pod", "pi-worker-0", "pi"), item("v1", "Pod", "pi-launcher-x", "pi-launcher")]
    cluster = Cluster(job, launcher, *pods)
    assert [pod["metadata"]["name"] for pod in pods_of(cast(SyncClient, cluster), job)] == [
        "pi-launcher-x",
        "pi-worker-0",
    ]


def test_a_node_is_listed_with_the_pods_that_it_still_has() -> None:
    cluster = Cluster()
    belonging_to(cast(SyncClient, cluster), {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
    assert cluster.selectors == ["spec.nodeName=n1,status.phase!=Succeeded,status.phase!=Failed"]


def test_a_queue_of_kueue_is_listed_with_what_is_in_it() -> None:
    workload = item("kueue.x-k8s.io/v1beta2", "Workload", "job-a")
    cluster = Cluster(workload)
    assert belonging_to(cast(SyncClient, cluster), item("kueue.x-k8s.io/v1beta2", "LocalQueue", "q")) == [workload]
    assert cluster.selectors == ["spec.queueName=q"]
