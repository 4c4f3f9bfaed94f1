"""Kubernetes' own gangs (scheduling.k8s.io), on an API server that has them switched on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from applied import apply, get, reaches, template
from cluster_tools import eventually, install, running_system
from control_plane import ControlPlane, control_plane
from lab_programs import NoLab

API = "scheduling.k8s.io/v1alpha2"
GROUPS = f"/apis/{API}/namespaces/default/podgroups"
PODS = "/api/v1/namespaces/default/pods"
SWITCHED_ON = ("--feature-gates=GenericWorkload=true,GangScheduling=true", f"--runtime-config={API}=true")


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with Workloads and PodGroups, and one node with room for three."""
    try:
        with control_plane(tmp_path_factory.mktemp("plane"), api_flags=SWITCHED_ON) as made:
            install(made, nodes=1)
            yield made
    except NoLab as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module", autouse=True)
def system(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """All services."""
    with running_system(plane, tmp_path_factory.mktemp("system")) as folder:
        yield folder


def named(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def pod(name: str, group: str, cpu: str = "10") -> dict[str, Any]:
    made = template(cpu, schedulerName="tidegate", schedulingGroup={"podGroupName": group})
    made["metadata"] |= {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", **made}


def condition(status: dict[str, Any]) -> dict[str, str]:
    found = [one for one in status.get("conditions") or () if one["type"] == "PodGroupScheduled"]
    return found[0] if found else {}


def test_a_gang_of_kubernetes_own_starts_whole(plane: ControlPlane) -> None:
    policy = {"gang": {"minCount": 3}}
    workload = named("Workload", "train", podGroupTemplates=[{"name": "workers", "schedulingPolicy": policy}])
    reference = {"workload": {"workloadName": "train", "podGroupTemplateName": "workers"}}
    group = named("PodGroup", "workers", podGroupTemplateRef=reference, schedulingPolicy=policy)
    apply(plane, workload, group, pod("w0", "workers"), pod("w1", "workers"))

    told = reaches(plane, f"{GROUPS}/workers", lambda status: condition(status).get("status") == "False")
    assert condition(told["status"])["reason"] == "Unschedulable"
    assert all("nodeName" not in get(plane, f"{PODS}/{name}")["spec"] for name in ("w0", "w1"))

    apply(plane, pod("w2", "workers"))

    reaches(plane, f"{GROUPS}/workers", lambda status: condition(status).get("status") == "True")
    eventually(lambda: all(get(plane, f"{PODS}/w{n}")["status"]["phase"] == "Succeeded" for n in range(3)))


def test_pods_of_a_basic_group_start_one_by_one(plane: ControlPlane) -> None:
    apply(
        plane, named("PodGroup", "loose", schedulingPolicy={"basic": {}}), pod("big", "loose", "40"), pod("s", "loose")
    )

    eventually(lambda: get(plane, f"{PODS}/s")["status"]["phase"] == "Succeeded")

    assert "nodeName" not in get(plane, f"{PODS}/big")["spec"]
