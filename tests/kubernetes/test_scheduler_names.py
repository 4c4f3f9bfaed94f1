"""Who schedules what: the pods of every name that is told, whoever makes them, and those of no other, which count as used room."""

from collections.abc import Iterator
from typing import Any

import pytest
from cluster_tools import eventually, running_system
from control_plane import ControlPlane, node

NAMES = ("tidegate", "volcano", "koord-scheduler", "default-scheduler")
SPACE = "/api/v1/namespaces/names"
KINDS = {"Deployment": "/apis/apps/v1/namespaces/names/deployments", "Job": "/apis/batch/v1/namespaces/names/jobs"}


@pytest.fixture(scope="module", autouse=True)
def system(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """All services, which place the pods of all four names."""
    plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": "names"}})
    with running_system(plane, tmp_path_factory.mktemp("system"), schedulers=",".join(NAMES)):
        yield
    plane.request("DELETE", SPACE)


def pod_spec(scheduler: str, cpu: str = "1", **more: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    # Who replaces kube-scheduler gets the pods of those who name nobody.
    chosen = {} if scheduler == "default-scheduler" else {"schedulerName": scheduler}
    return {"containers": [container], **chosen, **more}


def workload(kind: str, scheduler: str) -> dict[str, Any]:
    name = f"{kind.lower()}-{scheduler}"
    template = {"metadata": {"labels": {"app": name}}, "spec": pod_spec(scheduler)}
    if kind == "Job":
        template["spec"]["restartPolicy"] = "Never"
        template["metadata"]["annotations"] = {"lab/runs-for": "1s"}
        return {"metadata": {"name": name}, "spec": {"parallelism": 2, "completions": 2, "template": template}}
    return {
        "metadata": {"name": name},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


def pods(plane: ControlPlane, app: str) -> list[Any]:
    return list(plane.request("GET", f"{SPACE}/pods?labelSelector=app%3D{app}")["items"])


def test_pods_of_every_name_are_placed_and_run(plane: ControlPlane) -> None:
    for kind, path in KINDS.items():
        for name in NAMES:
            plane.request("POST", path, workload(kind, name))

    def done() -> bool:
        ready = [plane.request("GET", f"{KINDS['Deployment']}/deployment-{name}")["status"] for name in NAMES]
        ended = [plane.request("GET", f"{KINDS['Job']}/job-{name}")["status"] for name in NAMES]
        return all(one.get("readyReplicas") == 2 for one in ready) and all(one.get("succeeded") == 2 for one in ended)

    eventually(done)
    for name in NAMES:
        assert {one["spec"]["schedulerName"] for one in pods(plane, f"deployment-{name}")} == {name}


def test_pods_of_another_scheduler_count_as_used_room_and_are_left_to_it(plane: ControlPlane) -> None:
    plane.request("POST", "/api/v1/nodes", node("narrow", cpu="4", labels={"narrow": "yes"}))
    here = {"nodeSelector": {"narrow": "yes"}}
    theirs = {"metadata": {"name": "theirs"}, "spec": pod_spec("mine", "3", **here)}
    plane.request("POST", f"{SPACE}/pods", theirs)
    target = {"apiVersion": "v1", "kind": "Node", "name": "narrow"}
    plane.request("POST", f"{SPACE}/pods/theirs/binding", {"metadata": {"name": "theirs"}, "target": target})
    plane.request("POST", f"{SPACE}/pods", {"metadata": {"name": "alone"}, "spec": pod_spec("mine", **here)})
    for name, cpu in (("wide", "2"), ("small", "1")):
        plane.request("POST", f"{SPACE}/pods", {"metadata": {"name": name}, "spec": pod_spec("tidegate", cpu, **here)})

    eventually(lambda: plane.request("GET", f"{SPACE}/pods/small")["spec"].get("nodeName") == "narrow")

    def told() -> str:
        """What is said of it now; that the node was not known yet may have been said before."""
        conditions = plane.request("GET", f"{SPACE}/pods/wide")["status"].get("conditions") or [{}]
        return str(conditions[0].get("message", ""))

    eventually(lambda: "Insufficient cpu" in told())
    assert "nodeName" not in plane.request("GET", f"{SPACE}/pods/alone")["spec"]
