"""On a real node, with a kubelet and real containers: pods run, compute together, are killed and come back, are measured."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from cluster_tools import eventually, running_system
from control_plane import ControlPlane
from lab_image import PYTHON
from node_configuration import NODE
from node_place import CGROUPS
from real_node import RealNode
from real_pods import JOBS, apply, group_of, kill_container, log_of, phase, pods, ready, ring

from node_agent.kubelet.pod_groups import consumptions
from resources import parse_amounts
from tidegate_cli.supervisor import endpoint

pytestmark = pytest.mark.timeout(300)
METRIC = f"/apis/slo.koordinator.sh/v1alpha1/nodemetrics/{NODE}"
DEVICE = f"/apis/scheduling.koordinator.sh/v1alpha1/devices/{NODE}"
BUSY = "import time; held = bytearray(48 << 20)\nwhile True:\n  pass"
IDLE = "import signal; signal.sigwait({signal.SIGTERM})"


@pytest.fixture(scope="module")
def system(node: RealNode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """All services of Tidegate as processes beside the cluster; the data folder."""
    with running_system(node.plane, tmp_path_factory.mktemp("system"), node.inside) as folder:
        yield folder


def container(program: str, cpu: str, **more: Any) -> dict[str, Any]:
    requests = {"cpu": cpu, "memory": "32Mi"}
    return {
        "name": "main",
        "image": PYTHON,
        "command": ["python", "-c", program],
        "resources": {"requests": requests},
        **more,
    }


def deployment(name: str, replicas: int, made: dict[str, Any]) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"schedulerName": "tidegate", "terminationGracePeriodSeconds": 1, "containers": [made]},
            },
        },
    }


@contextmanager
def deployed(plane: ControlPlane, made: dict[str, Any]) -> Iterator[None]:
    path = "/apis/apps/v1/namespaces/default/deployments"
    plane.request("POST", path, made)
    try:
        yield
    finally:
        name = made["metadata"]["name"]
        plane.request("DELETE", f"{path}/{name}", {"propagationPolicy": "Background"})
        eventually(lambda: not pods(plane, f"app={name}"), 60)


@pytest.mark.usefixtures("system")
def test_pods_of_a_deployment_run_with_addresses_of_their_own(node: RealNode) -> None:
    with deployed(node.plane, deployment("web", 3, container(IDLE, "20m"))):
        found = ready(node.plane, "app=web", 3)

        assert {pod["spec"]["nodeName"] for pod in found} == {NODE}
        assert len({pod["status"]["podIP"] for pod in found}) == 3
        placed = node.plane.request("GET", "/api/v1/namespaces/default/events?fieldSelector=reason%3DScheduled")[
            "items"
        ]
        assert not {one.get("reportingComponent") or one["source"]["component"] for one in placed} & {
            "default-scheduler"
        }


# --- a gang that computes together --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("system")
def test_a_gang_computes_together_and_starts_anew_when_one_of_it_is_killed(node: RealNode) -> None:
    apply(node.plane, *ring(rounds=40))
    name = "ring-allreduce"
    first = ready(node.plane, f"volcano.sh/job-name={name}", 4)
    master, worker = f"{name}-master-0", next(pod for pod in first if pod["metadata"]["name"] == f"{name}-worker-1")
    eventually(lambda: "round 3 of 40" in log_of(node.plane, master), 60)

    kill_container(node, worker)

    eventually(lambda: phase(node.plane, name) == "Completed", 120)
    again = pods(node.plane, f"volcano.sh/job-name={name}")
    assert not {pod["metadata"]["uid"] for pod in again} & {pod["metadata"]["uid"] for pod in first}
    assert "checked: sum 6.0 over 4 ranks, 40 rounds" in log_of(node.plane, master)
    assert node.plane.request("GET", f"{JOBS}/{name}")["status"]["retryCount"] == 1
    node.plane.request("DELETE", f"{JOBS}/{name}")


# --- the node agent -----------------------------------------------------------------------------------------------------


@contextmanager
def agent(node: RealNode, system: Path, folder: Path) -> Iterator[None]:
    """The node agent beside the kubelet, on the bus of ``system``."""
    found = endpoint.read(system)
    assert found is not None
    gateway = psutil.Process(found.children["cluster_gateway"])
    words = gateway.cmdline()
    url, token = words[words.index("--nats-url") + 1], gateway.environ()["TIDEGATE_NATS_TOKEN"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TIDEGATE_")}
    inventory = folder / "inventory.yaml"
    inventory.write_text("gpus: [{memory: 80Gi, model: A100}, {memory: 80Gi, model: A100}]\nnvlink: [[0, 1]]\n")
    command = [*node.inside, sys.executable, "-m", "node_agent.main", "--kubelet", "true", "--node", NODE]
    command += ["--nats-url", url, "--data-dir", str(folder), "--usage-interval", "5s", "--inventory", str(inventory)]
    command += ["--cgroup-mount", str(CGROUPS), "--cgroup-root", node.cgroup_root]
    command += ["--nri-socket", str(node.place.folder / "nri.sock")]
    with (folder / "agent.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**kept, "TIDEGATE_NATS_TOKEN": token})
    try:
        yield
    finally:
        process.terminate()
        assert process.wait(20) == 0, (folder / "agent.log").read_text()


def told(plane: ControlPlane, pod: str) -> tuple[float, int] | None:
    """Cores and bytes that the NodeMetric says a pod uses."""
    try:
        status = plane.request("GET", METRIC)["status"]
    except OSError:
        return None
    used = {one["name"]: one["podUsage"]["resources"] for one in status.get("podsMetric", ())}.get(pod)
    if used is None:
        return None
    amounts = parse_amounts(used)
    return amounts["cpu"] / 1000, amounts["memory"]


def kubelet_says(plane: ControlPlane, pod: str) -> tuple[float, int]:
    summary = plane.request("GET", f"/api/v1/nodes/{NODE}/proxy/stats/summary")
    used = next(one for one in summary["pods"] if one["podRef"]["name"] == pod)
    return used["cpu"]["usageNanoCores"] / 1e9, used["memory"]["workingSetBytes"]


def test_the_agent_measures_what_the_kubelet_measures(node: RealNode, system: Path, tmp_path: Path) -> None:
    limited = container(BUSY, "20m")
    limited["resources"]["limits"] = {"cpu": "100m"}
    with deployed(node.plane, deployment("busy", 1, limited)), agent(node, system, tmp_path):
        (pod,) = ready(node.plane, "app=busy", 1)
        name = pod["metadata"]["name"]
        time.sleep(25)  # the kubelet's own figures are an average over its last 10 to 20 seconds

        ours, theirs = told(node.plane, name), kubelet_says(node.plane, name)

        assert ours is not None
        assert theirs[0] == pytest.approx(0.1, rel=0.2)
        assert ours[0] == pytest.approx(theirs[0], rel=0.2)
        assert ours[1] == pytest.approx(theirs[1], rel=0.1)
        assert ours[1] > 48 << 20
        _, group = group_of(node, pod["metadata"]["uid"])
        assert pod["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2] in group.containers
        assert len(group.containers) == 2


def test_an_agent_that_starts_anew_leaves_no_gap(node: RealNode, system: Path, tmp_path: Path) -> None:
    limited = container(BUSY, "20m")
    limited["resources"]["limits"] = {"cpu": "100m"}
    with deployed(node.plane, deployment("steady", 1, limited)):
        (pod,) = ready(node.plane, "app=steady", 1)
        uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        with agent(node, system, tmp_path):
            eventually(lambda: told(node.plane, name), 30)
        kept = json.loads((tmp_path / "node/usage.json").read_text())
        stored = node.plane.request("GET", METRIC)["status"]["updateTime"]

        with agent(node, system, tmp_path):
            eventually(lambda: node.plane.request("GET", METRIC)["status"]["updateTime"] != stored, 30)
        after = json.loads((tmp_path / "node/usage.json").read_text())

        groups, group = group_of(node, uid)
        assert consumptions(groups, {uid: group})[uid].cpu_ns >= after["cpu_ns"][uid] > kept["cpu_ns"][uid]
        assert told(node.plane, name)[0] == pytest.approx(0.1, rel=0.2)


def test_the_devices_of_a_node_stand_in_its_device_and_are_told_again_when_it_is_lost(
    node: RealNode, system: Path, tmp_path: Path
) -> None:
    before = node.plane.request("GET", f"/api/v1/nodes/{NODE}")

    def device() -> Any:
        try:
            return node.plane.request("GET", DEVICE)
        except OSError:
            return None

    with agent(node, system, tmp_path):
        first = eventually(device, 30)
        node.plane.request("DELETE", DEVICE)
        found = eventually(
            lambda: now if (now := device()) and now["metadata"]["uid"] != first["metadata"]["uid"] else None
        )

    assert [one["minor"] for one in found["spec"]["devices"]] == [0, 1]
    assert json.loads(found["metadata"]["annotations"]["tidegate.dev/inventory"])["nvlink"] == [[0, 1]]
    after = node.plane.request("GET", f"/api/v1/nodes/{NODE}")
    for part in ("labels", "annotations"):
        assert after["metadata"][part] == before["metadata"][part]


# --- the rules of a node --------------------------------------------------------------------------------------------------

RULES = "/apis/slo.koordinator.sh/v1alpha1/nodeslos"
THRESHOLDS = {"enable": True, "cpuSuppressPolicy": "cfsQuota", "cpuSuppressThresholdPercent": 95}


def test_the_agent_holds_best_effort_to_the_nodes_rules_and_sends_away_who_has_to_go(
    node: RealNode, system: Path, tmp_path: Path
) -> None:
    """The NodeSLO comes by the bus, the pods' groups are the kubelet's, and evictions go through the Eviction API."""
    plane = node.plane
    hog = deployment("hog", 1, {**container(BUSY, "0"), "resources": {}})
    labels = {"app": "hog", "koordinator.sh/qosClass": "BE"}
    hog["spec"]["template"]["metadata"]["labels"] = labels
    hog["spec"]["template"]["spec"]["priorityClassName"] = "batch"
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    plane.request("POST", classes, {"metadata": {"name": "batch"}, "value": 5500, "globalDefault": False})
    with deployed(plane, hog), agent(node, system, tmp_path):
        (pod,) = ready(plane, "app=hog", 1)
        groups, group = group_of(node, pod["metadata"]["uid"])
        files, tier = groups.knobs(), str(group.path.parent)
        assert files.read(tier, "cpu.max") == "max 100000"
        rules = {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeSLO", "metadata": {"name": NODE}}
        plane.request("POST", RULES, {**rules, "spec": {"resourceUsedThresholdWithBE": THRESHOLDS}})
        try:
            eventually(lambda: files.read(tier, "cpu.max") != "max 100000", 30)
            full = {**THRESHOLDS, "memoryEvictThresholdPercent": 1, "memoryEvictLowerPercent": 0}
            change = {"spec": {"resourceUsedThresholdWithBE": full}}
            plane.request("PATCH", f"{RULES}/{NODE}", change, "application/merge-patch+json")
            gone = pod["metadata"]["uid"]
            eventually(lambda: gone not in {one["metadata"]["uid"] for one in pods(plane, "app=hog")}, 60)
        finally:
            plane.request("DELETE", f"{RULES}/{NODE}")
        eventually(lambda: files.read(tier, "cpu.max") == "max 100000", 30)


FIRST_WORDS = "print(open('/sys/fs/cgroup/cpu/cpu.cfs_quota_us').read(), flush=True)\nimport time\ntime.sleep(1000)"
LENDING = {
    "colocation-config": '{"enable": true, "cpuReclaimThresholdPercent": 100, "memoryReclaimThresholdPercent": 100}'
}


def test_a_batch_container_has_its_limits_from_its_first_instruction(
    node: RealNode, system: Path, tmp_path: Path
) -> None:
    """What it asked for is lent by slo_controller, and put in force by the runtime itself, which asks the agent (NRI)."""
    if not (CGROUPS / "cpu").is_dir():
        pytest.skip("the container reads its quota by the name that version 1 has for it")
    plane = node.plane
    plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": "koordinator-system"}})
    configs = "/api/v1/namespaces/koordinator-system/configmaps"
    plane.request("POST", configs, {"metadata": {"name": "slo-controller-config"}, "data": LENDING})
    lent = {"kubernetes.io/batch-cpu": "100", "kubernetes.io/batch-memory": "64Mi"}
    made = deployment("crunch", 1, {**container(FIRST_WORDS, "0"), "resources": {"requests": lent, "limits": lent}})
    made["spec"]["template"]["metadata"]["labels"] = {"app": "crunch", "koordinator.sh/qosClass": "BE"}
    made["spec"]["template"]["spec"]["priorityClassName"] = "crunching"
    plane.request(
        "POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "crunching"}, "value": 5500}
    )
    try:
        with agent(node, system, tmp_path), ExitStack() as crunching:
            eventually(lambda: "nri_registered" in (tmp_path / "agent.log").read_text(), 30)
            crunching.enter_context(deployed(plane, made))
            (pod,) = ready(plane, "app=crunch", 1)
            name = pod["metadata"]["name"]
            assert eventually(lambda: log_of(plane, name), 30).split()[0] == "10000"
            _, group = group_of(node, pod["metadata"]["uid"])
            quota = CGROUPS / "cpu" / group.path / "cpu.cfs_quota_us"
            eventually(lambda: quota.read_text().strip() == "10000", 30)
    finally:
        plane.request("DELETE", f"{configs}/slo-controller-config")
