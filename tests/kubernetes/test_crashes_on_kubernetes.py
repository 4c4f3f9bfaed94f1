"""Whatever is killed while gangs start: no pod is bound twice, no gang stays half, no decision is lost, and it goes on."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from applied import template, volcano_job
from cluster_tools import eventually, running_system
from control_plane import ControlPlane
from gang_runs import JOBS, all_decided, child, gangs


@pytest.fixture(scope="module", autouse=True)
def system(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """All services, for the tests of this file together."""
    with running_system(plane, tmp_path_factory.mktemp("system")) as folder:
        yield folder


@pytest.mark.parametrize(
    "name", ["admission", "cluster_gateway", "descheduler", "gang_scheduler", "job_controller", "queue_manager", "nats"]
)
def test_a_part_that_is_killed_while_gangs_start_loses_nothing(plane: ControlPlane, system: Path, name: str) -> None:
    with gangs(plane, f"killed-{name.replace('_', '-')}-") as made:
        made.begun()

        os.kill(child(system, name), signal.SIGKILL)

        made.whole()
    all_decided(system)


def test_an_api_server_that_is_killed_and_comes_back_finds_the_gangs_whole(plane: ControlPlane, system: Path) -> None:
    with gangs(plane, "server") as made:
        made.begun()

        plane.kill("kube-apiserver")
        plane.start_again("kube-apiserver")
        plane.wait_ready()

        made.whole()
    all_decided(system)


def test_while_admission_is_away_nothing_unchecked_is_let_in_and_it_comes_back(
    plane: ControlPlane, system: Path
) -> None:
    """Its webhooks fail closed for its own kinds."""
    wrong = volcano_job("wrong", minAvailable=9, tasks=[{"replicas": 1, "template": template()}])
    right = volcano_job("right", tasks=[{"replicas": 1, "template": template()}])

    os.kill(child(system, "admission"), signal.SIGKILL)

    assert not _taken(plane, wrong)
    eventually(lambda: _taken(plane, right))
    assert not _taken(plane, wrong)
    plane.request("DELETE", f"{JOBS}/right")


def _taken(plane: ControlPlane, job: object) -> bool:
    try:
        plane.request("POST", JOBS, job)
    except OSError:
        return False
    return True
