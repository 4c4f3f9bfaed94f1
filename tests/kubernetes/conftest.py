"""A real API server for the tests of this folder; they are skipped, visibly, where it is not there and cannot be built."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

HERE = Path(__file__).parent
for place in (HERE, HERE.parent / "contract"):
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))

if TYPE_CHECKING:
    from control_plane import ControlPlane


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


@pytest.fixture
def system(plane: "ControlPlane", tmp_path: Path) -> Iterator[Path]:
    """All services of Tidegate as processes, driving the cluster; the data folder."""
    from cluster_tools import running_system

    with running_system(plane, tmp_path) as folder:
        yield folder
