"""An object of no sense stops nobody but itself."""

from typing import Any

from kube import Manifest

POD: Manifest = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "m"}]}}


def workload(kind: str, name: str) -> Manifest:
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": POD, "replicas": 1}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}


def test_what_a_controller_stumbles_over_is_put_aside_and_the_cluster_goes_on(rig: Any) -> None:
    """Before, the only writer of facts ended, and again each time that it was started."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {"taints": [["no taint"]]}}
    rig.write(node)
    rig.write(workload("DaemonSet", "daemon"))
    assert [(item.source, item.error) for item in rig.parked()] == [
        ("DaemonSet/default/daemon", "AttributeError: 'list' object has no attribute 'get'")
    ]
    assert b'"daemon"' in rig.parked()[0].payload
    rig.write(workload("ReplicaSet", "web"))
    assert len(rig.names("Pod")) == 1
    rig.restart()
    assert not rig.write(workload("ReplicaSet", "more")).error
    assert len(rig.names("Pod")) == 2


def test_an_object_that_was_mended_gets_its_chance(rig: Any) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {"taints": [["no taint"]]}}
    rig.write(node)
    rig.write(workload("DaemonSet", "daemon"))
    rig.write({**node, "spec": {}}, force=True)
    assert len(rig.names("Pod")) == 1
