"""Elastic quotas in the core: who is in which, what gang_scheduler hears of them, and groups that are in one."""

import json
from typing import Any

PREFIX = "quota.scheduling.koordinator.sh/"


def quota(
    cluster: Any, name: str, *, labels: dict[str, str] | None = None, namespace: str = "default", **spec: Any
) -> None:
    metadata: dict[str, Any] = {"name": name, "namespace": namespace}
    metadata["labels"] = {PREFIX + label: value for label, value in (labels or {}).items()}
    if "annotations" in spec:
        metadata["annotations"] = {PREFIX + label: value for label, value in spec.pop("annotations").items()}
    cluster.put(
        {"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota", "metadata": metadata, "spec": spec}
    )


def pod(cluster: Any, name: str, cpu: int, label: str = "", namespace: str = "default") -> None:
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "labels": {PREFIX + "name": label} if label else {},
    }
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}
    cluster.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def test_a_quota_may_use_its_runtime_and_deserves_its_minimum(cluster: Any) -> None:
    cluster.node(cpu=100)
    quota(cluster, "a", min={"cpu": 50}, max={"cpu": 100})
    quota(cluster, "b", min={"cpu": 50}, max={"cpu": 100})
    pod(cluster, "p", 30, "a")
    pod(cluster, "q", 90, "b")
    cluster.settle()
    entry = cluster.entitled["quota/b"]
    assert entry["capability"] == {"cpu": 70_000}
    assert entry["deserved"] == {"cpu": 50_000}
    assert entry["maximum"] == {"cpu": 100_000}
    assert entry["guarantee"] == {}
    assert entry["parent"] == ""
    assert "quota" not in cluster.entitled


def test_a_minimum_that_is_not_lent_is_guaranteed(cluster: Any) -> None:
    cluster.node(cpu=100)
    quota(cluster, "a", labels={"allow-lent-resource": "false"}, min={"cpu": 40}, max={"cpu": 100})
    cluster.settle()
    assert cluster.entitled["quota/a"]["guarantee"] == {"cpu": 40_000}


def test_what_others_use_is_not_there_for_quotas(cluster: Any) -> None:
    """And what quotas use is not there for Volcano's queues."""
    cluster.node(cpu=100)
    quota(cluster, "a", min={"cpu": 0}, max={"cpu": 100})
    pod(cluster, "p", 100, "a")
    cluster.pod("other", {"cpu": 30})
    cluster.bind("other")
    cluster.settle()
    assert cluster.entitled["quota/a"]["capability"] == {"cpu": 70_000}
    cluster.bind("p")
    cluster.pod("more", {"cpu": 30})
    cluster.settle()
    assert cluster.deserved("root").get("cpu", 0) == 0


def test_a_namespace_is_in_the_quota_of_its_name_or_in_the_one_that_lists_it(cluster: Any) -> None:
    cluster.node(cpu=100)
    quota(cluster, "team", namespace="team", min={"cpu": 0}, max={"cpu": 100})
    quota(cluster, "shared", annotations={"namespaces": json.dumps(["lab"])}, min={"cpu": 0}, max={"cpu": 100})
    pod(cluster, "p", 7, namespace="team")
    pod(cluster, "q", 9, namespace="lab")
    cluster.settle()
    assert cluster.entitled["quota/team"]["capability"] == {"cpu": 7000}
    assert cluster.entitled["quota/shared"]["capability"] == {"cpu": 9000}
    cluster.remove("ElasticQuota.scheduling.sigs.k8s.io", "team", "team")
    cluster.settle()
    assert "quota/team" not in cluster.entitled
    assert cluster.deserved("default") == {"cpu": 7000}


def test_a_group_larger_than_its_quotas_maximum_is_told_so(cluster: Any) -> None:
    cluster.node(cpu=100)
    quota(cluster, "dept", labels={"is-parent": "true"}, min={"cpu": 0}, max={"cpu": 10})
    quota(cluster, "team", labels={"parent": "dept"}, min={"cpu": 0}, max={"cpu": 50})
    metadata = {"name": "g", "namespace": "default", "labels": {PREFIX + "name": "team"}}
    spec = {"minMember": 2, "minResources": {"cpu": 20}}
    cluster.put({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": metadata, "spec": spec})
    cluster.settle()
    assert cluster.told("g") == "can never fit: its minimum needs cpu 20, quota dept may have at most 10"
    quota(cluster, "dept", labels={"is-parent": "true"}, min={"cpu": 0}, max={"cpu": 30})
    cluster.settle()
    assert cluster.group_status("g")["phase"] == "Inqueue"
    assert cluster.entitled["quota/team"]["capability"] == {"cpu": 20_000}


def test_shared_weights_come_from_the_annotation_and_else_from_the_maximum(cluster: Any) -> None:
    cluster.node(cpu=40)
    quota(cluster, "a", annotations={"shared-weight": '{"cpu": 3}'}, min={"cpu": 0}, max={"cpu": 100})
    quota(cluster, "b", annotations={"shared-weight": '{"cpu": 1}'}, min={"cpu": 0}, max={"cpu": 100})
    pod(cluster, "p", 100, "a")
    pod(cluster, "q", 100, "b")
    cluster.settle()
    assert cluster.entitled["quota/a"]["capability"] == {"cpu": 30_000}
    quota(cluster, "a", annotations={"shared-weight": "nonsense"}, min={"cpu": 0}, max={"cpu": 100})
    quota(cluster, "b", annotations={}, min={"cpu": 0}, max={"cpu": 100})
    cluster.settle()
    assert cluster.entitled["quota/a"]["capability"] == {"cpu": 20_000}


def test_a_quota_shows_what_it_uses_asks_for_and_may_use(cluster: Any) -> None:
    """A parent shows what those below it use together."""
    cluster.node(cpu=10)
    quota(cluster, "dept", labels={"is-parent": "true"}, min={"cpu": 0}, max={"cpu": 10})
    quota(cluster, "team", labels={"parent": "dept"}, min={"cpu": 2}, max={"cpu": 8})
    pod(cluster, "p", 3, "team")
    pod(cluster, "q", 9, "team")
    cluster.settle()
    cluster.bind("p")
    cluster.settle()
    expected = {"used": {"cpu": "3"}, "request": {"cpu": "12"}, "runtime": {"cpu": "8"}}
    for name in ("team", "dept"):
        assert cluster.read("ElasticQuota.scheduling.sigs.k8s.io", name).status == expected
    cluster.remove("Pod", "p")
    cluster.settle()
    assert cluster.read("ElasticQuota.scheduling.sigs.k8s.io", "team").status["used"] == {}
