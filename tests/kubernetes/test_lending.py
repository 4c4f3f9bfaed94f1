"""What is lent on nodes of a real API server: in their statuses, beside what their kubelets write, with rules that users may take over."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from cluster_tools import eventually, running_system
from control_plane import ControlPlane, node

from kube import rfc3339

NODE, CONFIG = "lending", "slo-controller-config"
NODES = f"/api/v1/nodes/{NODE}"
CONFIGS = "/api/v1/namespaces/koordinator-system/configmaps"
METRICS = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics"
SLO = f"/apis/slo.koordinator.sh/v1alpha1/nodeslos/{NODE}"
RECOMMENDATIONS = "/apis/analysis.koordinator.sh/v1alpha1/namespaces/default/recommendations"
RATIO = "node.koordinator.sh/resource-amplification-ratio"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


@pytest.fixture(scope="module", autouse=True)
def system(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """All services; a node that nobody else uses."""
    taint = {"key": "lending", "effect": "NoSchedule"}
    plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": "koordinator-system"}})
    plane.request("POST", "/api/v1/nodes", {**node(NODE, cpu="40", memory="80G"), "spec": {"taints": [taint]}})
    with running_system(plane, tmp_path_factory.mktemp("system")):
        yield
    plane.request("DELETE", NODES)
    plane.request("DELETE", "/api/v1/namespaces/koordinator-system")


def configure(plane: ControlPlane, **data: Any) -> None:
    """The content of the ConfigMap, in JSON where it is none yet."""
    texts = {key.replace("_", "-"): part if isinstance(part, str) else json.dumps(part) for key, part in data.items()}
    body = {"metadata": {"name": CONFIG}, "data": texts}
    there = plane.request("GET", CONFIGS)["items"]
    if any(one["metadata"]["name"] == CONFIG for one in there):
        plane.request("PUT", f"{CONFIGS}/{CONFIG}", body)
    else:
        plane.request("POST", CONFIGS, body)


def measure(plane: ControlPlane, cpu: str) -> None:
    """What koordlet would say: the object once, and its status each time."""
    there = {one["metadata"]["name"] for one in plane.request("GET", METRICS)["items"]}
    if NODE not in there:
        api = {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric"}
        plane.request("POST", METRICS, {**api, "metadata": {"name": NODE}})
    used = {"resources": {"cpu": cpu, "memory": "8G"}}
    status = {"updateTime": rfc3339(int(time.time() * 1000)), "nodeMetric": {"nodeUsage": used, "systemUsage": used}}
    plane.request("PATCH", f"{METRICS}/{NODE}/status", {"status": status}, MERGE)


def allocatable(plane: ControlPlane) -> dict[str, str]:
    found: dict[str, str] = plane.request("GET", NODES)["status"]["allocatable"]
    return found


def thresholds(plane: ControlPlane) -> Any:
    items = plane.request("GET", SLO.rpartition("/")[0])["items"]
    found = [one for one in items if one["metadata"]["name"] == NODE]
    return found[0]["spec"]["resourceUsedThresholdWithBE"]["cpuSuppressThresholdPercent"] if found else None


def test_a_node_lends_what_its_terms_come_to_and_a_kubelet_beside_it_changes_nothing(plane: ControlPlane) -> None:
    measure(plane, "4")
    configure(plane, colocation_config={"enable": True})
    eventually(lambda: allocatable(plane).get("kubernetes.io/batch-cpu") == "20k")
    beat = {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "StillReady"}]}}
    plane.request("PATCH", f"{NODES}/status", beat, STRATEGIC)
    there = plane.request("GET", NODES)
    told = {one["type"]: one for one in there["status"]["conditions"]}
    assert told["Ready"]["reason"] == "StillReady"
    assert "used by the system 4" in told["ResourcesLent"]["message"]
    managers = {one["manager"] for one in there["metadata"]["managedFields"] if "batch-cpu" in json.dumps(one)}
    assert managers == {"tidegate-slo-controller"}
    measure(plane, "10")
    eventually(lambda: allocatable(plane).get("kubernetes.io/batch-cpu") == "14k")


def test_rules_follow_the_configuration_until_a_user_takes_them_over(plane: ControlPlane) -> None:
    configure(
        plane, colocation_config={"enable": True}, resource_threshold_config={"clusterStrategy": {"enable": True}}
    )
    eventually(lambda: thresholds(plane) == 65)
    strategy = {"clusterStrategy": {"enable": True, "cpuSuppressThresholdPercent": 50}}
    configure(plane, colocation_config={"enable": True}, resource_threshold_config=strategy)
    eventually(lambda: thresholds(plane) == 50)
    mine = {"spec": {"resourceUsedThresholdWithBE": {"cpuSuppressThresholdPercent": 30}}}
    plane.request("PATCH", SLO, mine, MERGE)
    configure(plane, colocation_config={"enable": True}, resource_threshold_config="{")
    told = eventually(lambda: [one for one in _events(plane) if one["reason"] == "ConfigInvalid"])
    assert told[0]["type"] == "Warning" and "stays in force" in told[0]["message"]
    assert thresholds(plane) == 30
    plane.request("DELETE", SLO)
    eventually(lambda: thresholds(plane) == 50)


def _events(plane: ControlPlane) -> list[Any]:
    events: list[Any] = plane.request("GET", "/api/v1/namespaces/koordinator-system/events")["items"]
    return events


def test_a_kubelet_that_says_what_it_has_gives_out_more_where_that_is_configured(plane: ControlPlane) -> None:
    configure(plane, resource_amplification_config={"enable": True, "resourceAmplificationRatio": {"cpu": 1.5}})
    eventually(lambda: plane.request("GET", NODES)["metadata"].get("annotations", {}).get(RATIO))
    said = {"status": {"allocatable": {"cpu": "39"}}}

    def reported() -> bool:
        """A kubelet says what it has again and again; here by turns, so that each time it is news."""
        said["status"]["allocatable"]["cpu"] = "38" if said["status"]["allocatable"]["cpu"] == "39" else "39"
        plane.request("PATCH", f"{NODES}/status", said, STRATEGIC)
        return allocatable(plane)["cpu"] == {"38": "57", "39": "58500m"}[said["status"]["allocatable"]["cpu"]]

    eventually(reported)


def test_a_recommendation_is_answered_in_its_status(plane: ControlPlane) -> None:
    workload = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    api = {"apiVersion": "analysis.koordinator.sh/v1alpha1", "kind": "Recommendation"}
    item = {**api, "metadata": {"name": "web"}, "spec": {"target": {"type": "workload", "workload": workload}}}
    plane.request("POST", RECOMMENDATIONS, item)

    def condition() -> Any:
        return (plane.request("GET", f"{RECOMMENDATIONS}/web").get("status") or {}).get("conditions")

    (told,) = eventually(condition)
    assert told["reason"] == "NothingMeasured"
    plane.request("DELETE", f"{RECOMMENDATIONS}/web")
