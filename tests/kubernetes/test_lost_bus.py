"""The bus loses everything while jobs run: they run on, the facts come back from the API server, and new work is done."""

import os
import signal
from pathlib import Path

import pytest
from cluster_tools import eventually
from control_plane import ControlPlane
from played_jobs import kubectl, pod, volcano_job

from tidegate_cli.supervisor import endpoint

JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"


def state(plane: ControlPlane, name: str) -> str:
    status = plane.request("GET", f"{JOBS}/{name}").get("status") or {}
    return str(status.get("state", {}).get("phase"))


def members(plane: ControlPlane, name: str) -> list[tuple[str, str]]:
    found = plane.request("GET", f"/api/v1/namespaces/default/pods?labelSelector=volcano.sh/job-name%3D{name}")["items"]
    return sorted((one["metadata"]["uid"], one["spec"].get("nodeName", "")) for one in found)


@pytest.mark.timeout(240)
def test_a_lost_bus_costs_no_job(plane: ControlPlane, system: Path) -> None:
    kubectl(plane, "apply", "-f", "-", given=[volcano_job("before", pod("1h"), 3), volcano_job("long", pod("20s"), 2)])
    eventually(lambda: (state(plane, "before"), state(plane, "long")) == ("Running", "Running"), 60)
    there = members(plane, "before")
    found = endpoint.read(system)
    assert found is not None

    (system / "nats" / "jetstream").rename(system / "nats" / "lost")
    os.kill(found.children["nats"], signal.SIGKILL)

    eventually(lambda: state(plane, "long") == "Completed", 90)
    assert (state(plane, "before"), members(plane, "before")) == ("Running", there)
    eventually(lambda: _applied(plane), 60)
    eventually(lambda: state(plane, "after") == "Completed", 60)
    assert members(plane, "before") == there
    for name in ("before", "long", "after"):
        plane.request("DELETE", f"{JOBS}/{name}")


def _applied(plane: ControlPlane) -> bool:
    """Webhooks answer again once admission has read the new facts."""
    try:
        kubectl(plane, "apply", "-f", "-", given=[volcano_job("after", pod(), 2)])
    except AssertionError:
        return False
    return True
