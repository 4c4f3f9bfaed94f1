"""What pods use is known from the reports of their nodes; who hands in something else is believed."""

from typing import Any

from kube import Manifest, rfc3339

METRIC: Manifest = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
}


def running(cluster: Any, *names: str) -> None:
    """Pods of the Deployment web that have been ready for a long time, each requesting a core."""
    since = rfc3339(cluster.now - 3_600_000)
    for name in names:
        condition = {"type": "Ready", "status": "True", "lastTransitionTime": since}
        containers = [{"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}]
        cluster.put(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "labels": {"app": "web"}, "creationTimestamp": since},
                "spec": {"nodeName": "n", "containers": containers},
                "status": {"phase": "Running", "startTime": since, "conditions": [condition]},
            }
        )


def report(cluster: Any, cpu: str, *names: str, age_ms: int = 0) -> None:
    """What the agent of the node says that each pod uses."""
    usage = {"resources": {"cpu": cpu, "memory": "1Gi"}}
    pods = [{"namespace": "default", "name": name, "podUsage": usage} for name in names]
    status = {"updateTime": rfc3339(cluster.now - age_ms), "podsMetric": pods}
    manifest = {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric", "metadata": {"name": "n"}}
    cluster.put({**manifest, "status": status})


def test_reports_of_nodes_scale_by_what_pods_use(cluster: Any) -> None:
    cluster.deployment(2)
    running(cluster, "a", "b")
    report(cluster, "1", "a", "b")
    cluster.autoscaler(metrics=[METRIC])
    assert cluster.replicas() == 4


def test_a_report_that_is_too_old_is_none(cluster: Any) -> None:
    """A node that is silent says nothing of its pods, least of all that they do nothing."""
    cluster.deployment(2)
    running(cluster, "a", "b")
    report(cluster, "0", "a", "b", age_ms=200_000)
    cluster.autoscaler(metrics=[METRIC])
    assert cluster.replicas() == 2
    assert cluster.condition("ScalingActive") == ("False", "FailedGetResourceMetric")


def test_a_report_of_an_earlier_pod_of_the_name_is_none(cluster: Any) -> None:
    cluster.deployment(2)
    report(cluster, "4", "a", "b", age_ms=10_000)
    for name in "ab":
        cluster.put({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"nodeName": "n"}})
    running(cluster, "c")
    cluster.autoscaler(metrics=[METRIC])
    assert cluster.replicas() == 2


def test_what_is_handed_in_wins_also_where_it_says_that_nothing_is_known(cluster: Any) -> None:
    cluster.deployment(2)
    running(cluster, "a", "b")
    report(cluster, "4", "a", "b")
    for name in "ab":
        cluster.sample("cpu", "500m", pod=name)
    cluster.autoscaler(metrics=[METRIC])
    assert cluster.replicas() == 2
    for name in "ab":
        cluster.sample("cpu", None, pod=name)
    cluster.advance(15)
    assert cluster.condition("ScalingActive")[0] == "False"
    assert cluster.replicas() == 2


def test_one_container_is_measured_alone(cluster: Any) -> None:
    cluster.deployment(1)
    running(cluster, "a")
    usage, own = {"resources": {"cpu": "4"}}, {"resources": {"cpu": "1"}}
    pod = {"namespace": "default", "name": "a", "podUsage": usage, "containers": [{"name": "c", "usage": own}]}
    status = {"updateTime": cluster.time(), "podsMetric": [pod]}
    manifest = {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric", "metadata": {"name": "n"}}
    cluster.put({**manifest, "status": status})
    source = {"name": "cpu", "container": "c", "target": {"type": "Utilization", "averageUtilization": 50}}
    cluster.autoscaler(metrics=[{"type": "ContainerResource", "containerResource": source}])
    assert cluster.replicas() == 2
