"""The group of a v1 job, and what changes of a job do to its pods."""

from collections.abc import Callable
from typing import Any

Make = Callable[..., Any]


def torch(spec: dict[str, Any] | None = None, metadata: dict[str, Any] | None = None, **counts: int) -> dict[str, Any]:
    container = {"name": "pytorch", "image": "busybox", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}
    specs = {
        word: {"replicas": count, "restartPolicy": "OnFailure", "template": {"spec": {"containers": [container]}}}
        for word, count in counts.items()
    }
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "p", **(metadata or {})},
        "spec": {"pytorchReplicaSpecs": specs, **(spec or {})},
    }


def test_pods_are_made_together_and_only_after_the_queue_let_the_group_in(make_batch_cluster: Make) -> None:
    cluster = make_batch_cluster(let_in=False)
    cluster.apply(torch(Master=1, Worker=49))
    assert cluster.pods() == {}
    cluster.patch_status("PodGroup/p", {"phase": "Inqueue"})
    assert len(cluster.pods()) == 50
    assert cluster.said().count("PodsWanted") == 1


def test_the_group_is_of_all_pods_in_the_queue_default(cluster: Any) -> None:
    cluster.apply(torch(Master=1, Worker=3))
    spec = cluster.get("PodGroup/p").spec
    assert spec == {"minMember": 4, "queue": "default", "minResources": {"cpu": "2", "memory": "4Gi"}}


def test_the_scheduling_policy_names_queue_priority_and_smallest_number(cluster: Any) -> None:
    policy = {"queue": "q", "priorityClass": "high", "minAvailable": 2, "scheduleTimeoutSeconds": 60}
    cluster.apply(torch({"runPolicy": {"schedulingPolicy": policy}}, Master=1, Worker=3))
    spec = cluster.get("PodGroup/p").spec
    assert (spec["minMember"], spec["queue"], spec["priorityClassName"]) == (2, "q", "high")
    assert spec["minResources"]["cpu"] == "1"


def test_the_queue_may_be_a_label_of_the_job_or_an_annotation_of_its_namespace(cluster: Any) -> None:
    name = "scheduling.volcano.sh/queue-name"
    cluster.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "annotations": {name: "n"}}}
    )
    cluster.apply(torch(Worker=1))
    assert cluster.get("PodGroup/p").spec["queue"] == "n"
    cluster.apply(torch(metadata={"labels": {name: "q"}}, Worker=1))
    assert cluster.get("PodGroup/p").spec["queue"] == "q"


def test_members_know_their_gang_and_role_and_who_pays(cluster: Any) -> None:
    cluster.apply(torch(metadata={"labels": {"kueue.x-k8s.io/queue-name": "lq"}}, Worker=1))
    pod = cluster.get("Pod/p-worker-0")
    assert pod.annotations == {"scheduling.k8s.io/group-name": "p", "volcano.sh/task-spec": "worker"}
    assert pod.labels["kueue.x-k8s.io/queue-name"] == "lq"
    assert cluster.get("PodGroup/p").labels == {"kueue.x-k8s.io/queue-name": "lq"}


def test_an_elastic_job_starts_with_its_smallest_number_of_workers(cluster: Any) -> None:
    cluster.apply(torch({"elasticPolicy": {"minReplicas": 2, "maxReplicas": 4}}, Worker=3))
    assert cluster.get("PodGroup/p").spec["minMember"] == 2
    assert len(cluster.pods()) == 3


def test_scaling_an_elastic_job_touches_only_the_highest_workers(cluster: Any) -> None:
    elastic = {"elasticPolicy": {"minReplicas": 1, "maxReplicas": 4}}
    cluster.apply(torch(elastic, Worker=2))
    uids = {name: cluster.get(f"Pod/{name}").uid for name in cluster.pods()}
    cluster.apply(torch(elastic, Worker=4))
    assert list(cluster.pods()) == [f"p-worker-{index}" for index in range(4)]
    cluster.apply(torch(elastic, Worker=1))
    assert list(cluster.pods()) == ["p-worker-0"]
    assert cluster.get("Pod/p-worker-0").uid == uids["p-worker-0"]
    assert not cluster.has("Service/p-worker-1")


def test_scaling_in_takes_no_further_pod_while_one_is_stopping(make_batch_cluster: Make) -> None:
    elastic = {"elasticPolicy": {"minReplicas": 1, "maxReplicas": 4}}
    cluster = make_batch_cluster(termination="30s")
    cluster.apply(torch(elastic, Worker=3))
    cluster.apply(torch(elastic, Worker=2))
    cluster.apply(torch(elastic, metadata={"labels": {"touched": "yes"}}, Worker=2))
    assert cluster.pods() == {"p-worker-0": "Running", "p-worker-1": "Running", "p-worker-2": "Running!"}
    cluster.advance("30s")
    assert list(cluster.pods()) == ["p-worker-0", "p-worker-1"]


def test_any_worker_of_an_elastic_job_may_finish_it(cluster: Any) -> None:
    cluster.apply(torch({"elasticPolicy": {"minReplicas": 1, "maxReplicas": 2}}, Worker=2))
    cluster.pods_become(**{"p-worker-1": "Succeeded"})
    assert cluster.condition("PyTorchJob/p", "Succeeded")["status"] == "True"


def test_metrics_of_an_elastic_job_become_an_autoscaler(cluster: Any) -> None:
    metrics = [{"type": "Resource", "resource": {"name": "cpu"}}]
    cluster.apply(torch({"elasticPolicy": {"minReplicas": 1, "maxReplicas": 4, "metrics": metrics}}, Worker=2))
    spec = cluster.get("HorizontalPodAutoscaler/p").spec
    assert spec["scaleTargetRef"] == {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "p"}
    assert (spec["minReplicas"], spec["maxReplicas"]) == (1, 4)


def test_the_group_of_a_job_that_ended_stays_while_a_pod_still_runs(cluster: Any) -> None:
    """Its queue must see what is used until it is free."""
    cluster.apply(torch(Master=1, Worker=1))
    cluster.pods_become(**{"p-master-0": "Succeeded"})
    assert cluster.condition("PyTorchJob/p", "Succeeded")["status"] == "True"
    assert cluster.has("PodGroup/p")
    cluster.pods_become(**{"p-worker-0": "Succeeded"})
    assert not cluster.has("PodGroup/p")


def test_a_bad_quantity_costs_the_group_its_resources_and_nothing_else(cluster: Any) -> None:
    manifest = torch(Worker=1)
    manifest["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["resources"] = {
        "requests": {"cpu": "much"}
    }
    cluster.apply(manifest)
    assert "minResources" not in cluster.get("PodGroup/p").spec
