"""Groups with more members than they were given quota for."""

import json
from typing import Any

from kube import Outcome

GROUP = "PodGroup.scheduling.volcano.sh"
KUEUE = "kueue.x-k8s.io/v1beta2"


def prepare(cluster: Any, cpu: int) -> None:
    flavors = [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": cpu}]}]
    spec = {"namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}]}
    cluster.put({"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "f"}})
    cluster.put({"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": "q"}, "spec": spec})
    metadata = {"name": "q", "namespace": "default"}
    cluster.put({"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": "q"}})


def group(cluster: Any, name: str, least: int, **spec: Any) -> None:
    metadata = {"name": name, "namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": "q"}}
    content = {"minMember": least, "minResources": {"cpu": least}, **spec}
    manifest = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": content,
    }
    cluster.put(manifest)


def quota_of(cluster: Any, name: str) -> int:
    text = cluster.read(GROUP, name).annotations.get("tidegate.dev/admission")
    return int(json.loads(text)["usage"]["cpu"]) // 1000 if text else 0


def test_a_group_grows_member_by_member_as_far_as_quota_goes(cluster: Any) -> None:
    prepare(cluster, 4)
    group(cluster, "g", 2)
    cluster.settle()
    assert quota_of(cluster, "g") == 2
    for number in range(6):
        cluster.pod(f"g-{number}", {"cpu": 1}, group="g")
    cluster.settle()
    assert quota_of(cluster, "g") == 4
    prepare(cluster, 5)
    cluster.settle()
    assert quota_of(cluster, "g") == 5


def test_a_minimum_that_waits_comes_before_the_growth_of_others(cluster: Any) -> None:
    prepare(cluster, 4)
    group(cluster, "g", 2)
    cluster.settle()
    for number in range(6):
        cluster.pod(f"g-{number}", {"cpu": 1}, group="g")
    group(cluster, "h", 2)
    cluster.settle()
    assert (quota_of(cluster, "g"), quota_of(cluster, "h")) == (2, 2)


def test_role_minima_beyond_the_group_minimum_need_quota_too(cluster: Any) -> None:
    prepare(cluster, 5)
    group(cluster, "g", 2, minTaskMember={"w": 6})
    cluster.settle()
    assert quota_of(cluster, "g") == 0
    assert "needs 6" in cluster.told("g")


def test_growth_that_was_refused_holds_nothing(cluster: Any) -> None:
    prepare(cluster, 4)
    group(cluster, "g", 2)
    cluster.settle()
    for number in range(4):
        cluster.pod(f"g-{number}", {"cpu": 1}, group="g")
    [decision] = [item for item in cluster.core.decide(cluster.now, set()) if item.name == "WorkloadGrown"]
    cluster.core.assume("d", decision)
    assert cluster.core.check() == []
    cluster.core.settle(Outcome("d", decision.name, decision.subject, False))
    assert cluster.core.check() == []
    cluster.pod("late", {"cpu": 1}, group="g")
    cluster.settle()
    assert quota_of(cluster, "g") == 4
