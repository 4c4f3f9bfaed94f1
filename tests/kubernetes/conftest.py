"""A real API server for the tests of this folder; they are skipped, visibly, where it is not there and cannot be built."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

HERE = Path(__file__).parent
for place in (HERE, HERE.parent / "contract", HERE.parent / "containers"):
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))

if TYPE_CHECKING:
    from control_plane import ControlPlane
    from helm_tools import Helm, Manifest
    from real_node import RealNode


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[ControlPlane]":
    """The control plane, with our definitions and twenty nodes."""
    from cluster_tools import install
    from control_plane import control_plane
    from lab_programs import NoLab

    try:
        with control_plane(tmp_path_factory.mktemp("plane")) as made:
            install(made)
            yield made
    except NoLab as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[RealNode]":
    """A cluster of one real node, with our definitions. It takes minutes more, so it has to be asked for."""
    if os.environ.get("TIDEGATE_LAB") not in ("all", "build"):
        pytest.skip("the real node (kubelet, containerd) takes five minutes more; TIDEGATE_LAB=all runs it, as root")
    from cluster_tools import install
    from lab_programs import NoLab
    from node_configuration import NODE
    from real_node import real_node

    try:
        with real_node(tmp_path_factory.mktemp("real")) as made:
            install(made.plane, nodes=0)
            # What else runs on this machine must not keep pods out.
            unlimited = {"scheduling.koordinator.sh/usage-thresholds": '{"usageThresholds": {"cpu": 0, "memory": 0}}'}
            patch = {"metadata": {"annotations": unlimited}}
            made.plane.request("PATCH", f"/api/v1/nodes/{NODE}", patch, "application/merge-patch+json")
            yield made
        assert made.left_behind() == []
    except NoLab as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def bare_plane(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[ControlPlane]":
    """A control plane with three nodes, as it is before anything is installed."""
    from control_plane import control_plane, node
    from lab_programs import NoLab

    try:
        with control_plane(tmp_path_factory.mktemp("plane")) as made:
            for number in range(3):
                made.request("POST", "/api/v1/nodes", node(f"n{number}", gpus=8))
            yield made
    except NoLab as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def empty_plane(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[ControlPlane]":
    """A control plane with our definitions, without nodes and without anybody who plays them. Scenarios in real time take minutes
    and a machine that has nothing else to do, so they have to be asked for.
    """
    if os.environ.get("TIDEGATE_LAB") not in ("all", "build"):
        pytest.skip("scenarios in real time on an API server take minutes more; TIDEGATE_LAB=all plays them")
    from cluster_tools import install
    from control_plane import control_plane
    from lab_programs import NoLab

    try:
        with control_plane(tmp_path_factory.mktemp("plane"), kwok=False, controllers=True) as made:
            install(made, nodes=0)
            yield made
    except NoLab as error:
        pytest.skip(str(error))


@pytest.fixture
def system(plane: "ControlPlane", tmp_path: Path) -> Iterator[Path]:
    """All services of Tidegate as processes, driving the cluster; the data folder."""
    from cluster_tools import running_system

    with running_system(plane, tmp_path) as folder:
        yield folder


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> "Helm":
    """Helm without a cluster, to render charts."""
    from helm_tools import Helm
    from lab_programs import NoLab, programs

    try:
        programs("helm")
    except NoLab as error:
        pytest.skip(str(error))
    return Helm(tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="module")
def usual(helm: "Helm") -> "list[Manifest]":
    """What the chart of all is rendered to when nothing is chosen."""
    return helm.template("tidegate")
