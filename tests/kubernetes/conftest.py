"""A real API server for the tests of this folder; they are skipped, visibly, where it is not there and cannot be built."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from control_plane import ControlPlane, control_plane, node
from lab_programs import NoLab

from admission.domain.definitions import DEFINED, definition
from kube import KINDS


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The control plane, with our definitions and a hundred nodes."""
    try:
        with control_plane(tmp_path_factory.mktemp("plane")) as made:
            install(made)
            yield made
    except NoLab as error:
        pytest.skip(str(error))


def install(plane: ControlPlane, nodes: int = 20) -> None:
    """Our definitions, and nodes."""
    for kind in DEFINED:
        plane.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(kind))
    for number in range(nodes):
        plane.request("POST", "/api/v1/nodes", node(f"n{number:03}", gpus=8))
    eventually(lambda: all(_served(plane, kind) for kind in DEFINED))


def _served(plane: ControlPlane, kind: str) -> bool:
    info = KINDS[kind]
    name = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{info.plural}.{info.group}"
    conditions = plane.request("GET", name).get("status", {}).get("conditions", [])
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


def eventually(holds: Callable[[], Any], seconds: float = 30.0) -> Any:
    """What ``holds`` returns once that is true. Raises AssertionError when it does not come to be."""
    until = time.monotonic() + seconds
    while True:
        if found := holds():
            return found
        assert time.monotonic() < until, f"not within {seconds:g} s"
        time.sleep(0.05)


@pytest.fixture
def system(plane: ControlPlane, tmp_path: Path) -> Iterator[Path]:
    """All services of Tidegate as processes, driving the cluster; the data folder."""
    folder = tmp_path / "data"
    command = [sys.executable, "-m", "tidegate_cli.main", "up", "--data-dir", str(folder)]
    command += ["--kubeconfig", str(plane.kubeconfig), "--scheduler-names", "tidegate,volcano"]
    log = tmp_path / "up.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
    try:
        eventually(lambda: "ready at" in log.read_text() or process.poll() is not None, 60)
        assert process.poll() is None, log.read_text()
        yield folder
    finally:
        process.terminate()
        process.wait(30)
