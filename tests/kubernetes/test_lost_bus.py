"""The bus loses everything while jobs run: they run on, the facts come back from the API server, and new work is done."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from applied import end
from cluster_tools import eventually
from control_plane import ControlPlane
from played_jobs import kubectl, pod, volcano_job

from tidegate_cli.supervisor import endpoint

JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"


def state(plane: ControlPlane, name: str) -> str:
    status = plane.request("GET", f"{JOBS}/{name}").get("status") or {}
    return str(status.get("state", {}).get("phase"))


def pods_of(plane: ControlPlane, name: str) -> list[Any]:
    path = f"/api/v1/namespaces/default/pods?labelSelector=volcano.sh/job-name%3D{name}"
    return list(plane.request("GET", path)["items"])


def members(plane: ControlPlane, name: str) -> list[tuple[str, str]]:
    return sorted((one["metadata"]["uid"], one["spec"].get("nodeName", "")) for one in pods_of(plane, name))


@pytest.mark.timeout(400)
def test_a_lost_bus_costs_no_job(plane: ControlPlane, system: Path) -> None:
    kubectl(plane, "apply", "-f", "-", given=[volcano_job("before", pod("1h"), 3), volcano_job("long", pod("1h"), 2)])
    eventually(lambda: (state(plane, "before"), state(plane, "long")) == ("Running", "Running"))
    there = members(plane, "before")
    ending = [one["metadata"]["name"] for one in pods_of(plane, "long")]
    found = endpoint.read(system)
    assert found is not None

    (system / "nats" / "jetstream").rename(system / "nats" / "lost")
    os.kill(found.children["nats"], signal.SIGKILL)
    end(plane, *ending)

    eventually(lambda: state(plane, "long") == "Completed")
    assert (state(plane, "before"), members(plane, "before")) == ("Running", there)
    eventually(lambda: _applied(plane))
    eventually(lambda: state(plane, "after") == "Completed")
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
