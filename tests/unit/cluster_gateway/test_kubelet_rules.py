"""Agents beside kubelets are told the pods of their node, without what only a kubelet needs, and its rules."""

from typing import Any

from cluster_gateway.domain.assignments import NodeAssignment
from cluster_gateway.domain.mirror import Mirror
from cluster_gateway.domain.node_objects import METRIC
from kube import Key, Manifest, Store
from kube.node_slo import NODE_SLO

ANNOTATIONS = {"scheduling.koordinator.sh/resource-status": '{"cpuset": "0-1"}', "private.example.com/note": "not told"}


class Town:
    """A mirror that sees objects, one change set each."""

    def __init__(self, loaded: Store | None = None) -> None:
        self.mirror, self.version = Mirror(loaded or Store()), 0

    def sees(self, kind: str, name: str, **parts: Any) -> None:
        self.version += 1
        metadata = {
            "name": name,
            "uid": f"uid-{name}",
            "resourceVersion": str(self.version),
            **parts.pop("metadata", {}),
        }
        self.mirror.begin(0, self.version)
        self.mirror.seen(kind, {"metadata": metadata, **parts})
        self.mirror.take()

    def pod(self, name: str, node: str, status: Manifest | None = None, **metadata: Any) -> None:
        container = {
            "name": "main",
            "image": "x",
            "env": [{"name": "SECRET", "value": "s"}],
            "resources": {"limits": {"cpu": "1"}},
        }
        spec = {"nodeName": node, "priority": 5500, "containers": [container]}
        told = {"namespace": "default", "annotations": ANNOTATIONS, **metadata}
        self.sees("Pod", name, metadata=told, spec=spec, status=status or {})

    def told(self) -> dict[str, NodeAssignment]:
        return {one.node: one for one in self.mirror.rules.take()}


def running(container: str) -> Manifest:
    return {"phase": "Running", "containerStatuses": [{"name": "main", "containerID": f"containerd://{container}"}]}


def test_nobody_is_told_anything_who_has_not_reported() -> None:
    town = Town()
    town.sees("Node", "n1", status={"capacity": {"cpu": "4"}})
    town.pod("a", "n1")
    assert town.told() == {}


def test_an_agent_that_reports_is_told_its_pods_and_rules_and_nothing_private() -> None:
    town = Town()
    town.sees("Node", "n1", status={"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}})
    town.sees(NODE_SLO, "n1", spec={"cpuBurstStrategy": {"policy": "auto"}})
    town.pod("a", "n1", running("c1"))
    town.pod("b", "n2")
    town.mirror.rules.heard("n1")
    told = town.told()["n1"]
    (pod,) = told.pods
    assert (pod["metadata"]["uid"], pod["spec"]["priority"]) == ("uid-a", 5500)
    assert pod["spec"]["containers"] == [{"name": "main", "resources": {"limits": {"cpu": "1"}}}]
    assert list(pod["metadata"]["annotations"]) == ["scheduling.koordinator.sh/resource-status"]
    assert pod["status"]["containerStatuses"] == [{"name": "main", "containerID": "containerd://c1"}]
    assert told.slo == {"cpuBurstStrategy": {"policy": "auto"}}
    assert told.node_object["status"] == {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}}
    assert town.told() == {}


def test_what_is_new_for_an_agent_is_told_and_what_is_not_is_not() -> None:
    town = Town()
    town.sees("Node", "n1", status={"capacity": {"cpu": "4"}})
    town.pod("a", "n1", running("c1"))
    town.mirror.rules.heard("n1")
    town.told()
    town.pod("a", "n1", {**running("c1"), "podIP": "10.0.0.1"})
    town.sees("Node", "n1", status={"capacity": {"cpu": "4"}, "images": []})
    assert town.told() == {}
    town.pod("a", "n1", running("c2"))
    assert "n1" in town.told()
    town.sees(NODE_SLO, "n1", spec={})
    assert "n1" in town.told()
    town.sees("Node", "n1", status={"capacity": {"cpu": "8"}})
    assert "n1" in town.told()
    town.pod("a", "n1", {"phase": "Succeeded"})
    assert town.told()["n1"].pods == ()


def test_a_gateway_that_starts_anew_knows_agents_by_what_they_reported() -> None:
    town = Town()
    town.pod("a", "n1")
    town.sees(METRIC, "n1", metadata={"labels": {"app.kubernetes.io/managed-by": "tidegate"}})
    town.sees(METRIC, "n2")
    again = Town(town.mirror.store)
    assert [pod["metadata"]["name"] for pod in again.told()["n1"].pods] == ["a"]
    assert again.told() == {}
    assert again.mirror.store.get(Key("Pod", "default", "a")) is not None
