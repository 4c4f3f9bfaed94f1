"""The Workload objects that show work in LocalQueues: one for each job, from its making to its end."""

from typing import Any

LABEL = "kueue.x-k8s.io/queue-name"


def workloads(cluster: Any) -> list[Any]:
    return [item for key, item in cluster.store.objects.items() if key.kind == "Workload.kueue.x-k8s.io"]


def setting(cluster: Any) -> None:
    version = "kueue.x-k8s.io/v1beta2"
    flavors = [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": 4}]}]
    spec = {"namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}]}
    cluster.put({"apiVersion": version, "kind": "ResourceFlavor", "metadata": {"name": "f"}})
    cluster.put({"apiVersion": version, "kind": "ClusterQueue", "metadata": {"name": "q"}, "spec": spec})
    metadata = {"name": "q", "namespace": "default"}
    cluster.put({"apiVersion": version, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": "q"}})


def job_and_group(cluster: Any) -> None:
    pod = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}
    roles = {"Master": {"replicas": 1, "template": pod}, "Worker": {"replicas": 2, "template": pod}}
    metadata = {"name": "t", "namespace": "default", "labels": {LABEL: "q"}}
    job = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": metadata}
    made = cluster.put({**job, "spec": {"pytorchReplicaSpecs": roles}})
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "t", "uid": made.uid, "controller": True}
    spec = {"minMember": 3, "minResources": {"cpu": "3"}}
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "spec": spec}
    cluster.put({**group, "metadata": {**metadata, "ownerReferences": [owner]}})


def condition(item: Any, kind: str) -> tuple[str, str]:
    found = next(word for word in item.status["conditions"] if word["type"] == kind)
    return found["status"], found["reason"]


def test_a_job_has_one_workload_with_its_pod_sets_and_what_it_was_given(cluster: Any) -> None:
    setting(cluster)
    job_and_group(cluster)
    cluster.settle()
    (shown,) = workloads(cluster)
    assert shown.name.startswith("pytorchjob-t-")
    assert shown.controller["kind"] == "PyTorchJob"
    assert [(part["name"], part["count"]) for part in shown.spec["podSets"]] == [("master", 1), ("worker", 2)]
    assert shown.status["admission"]["clusterQueue"] == "q"
    assert condition(shown, "Admitted") == ("True", "Admitted")
    assert condition(shown, "PodsReady") == ("False", "WaitForStart")


def test_work_that_waits_says_in_its_workload_why(cluster: Any) -> None:
    setting(cluster)
    cluster.pod("p", {"cpu": 5})
    item = cluster.read("Pod", "p")
    cluster.put({**item.manifest(), "metadata": {**item.manifest()["metadata"], "labels": {LABEL: "q"}}})
    cluster.settle()
    (shown,) = workloads(cluster)
    assert condition(shown, "QuotaReserved") == ("False", "ExceedsMaxQuota")
    assert "admission" not in shown.status


def test_a_restart_writes_nothing_that_is_written_already(cluster: Any) -> None:
    setting(cluster)
    job_and_group(cluster)
    cluster.settle()
    before = {key: item.revision for key, item in cluster.store.objects.items()}
    cluster.restart()
    assert [made.name for made in cluster.settle() if made.name != "EntitlementsComputed"] == []
    assert {key: item.revision for key, item in cluster.store.objects.items()} == before


def test_the_workload_of_work_that_left_its_queue_goes(cluster: Any) -> None:
    setting(cluster)
    job_and_group(cluster)
    cluster.settle()
    cluster.remove("PodGroup.scheduling.volcano.sh", "t")
    cluster.settle()
    assert workloads(cluster) == []
