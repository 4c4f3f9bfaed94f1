"""The bus in both makes, in memory and on a real NATS server of its own; the cluster gateway on all of its drivers."""

import asyncio
import itertools
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bus import Bus, MemoryBus
from bus.jetstream import JetStreamBus
from bus.server import ServerSettings, command, free_port, wait_until_open

HERE = Path(__file__).parent
for place in (HERE, HERE.parent / "kubernetes"):
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))

if TYPE_CHECKING:
    from cluster_sides import Side

CONTRACT_KINDS = (
    "Job.batch.volcano.sh",
    "PodGroup.scheduling.volcano.sh",
    "Queue.scheduling.volcano.sh",
    "MetricReading.tidegate.dev",
    "TriggerAuthentication.keda.sh",
)
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A real API server without anything that reacts to it; skipped, visibly, where it is not there."""
    from cluster_tools import define
    from control_plane import control_plane
    from lab_programs import NoLab

    try:
        with control_plane(tmp_path_factory.mktemp("plane"), kwok=False) as made:
            define(made, CONTRACT_KINDS)
            yield made
    except NoLab as error:
        pytest.skip(str(error))


@pytest.fixture(params=["local", "simulated", "kubernetes"])
async def side(request: pytest.FixtureRequest) -> "AsyncIterator[Side]":
    """A gateway that is ready."""
    from cluster_sides import KubernetesSide, OwnSide

    number = next(_numbers)
    if request.param == "kubernetes":
        made: Side = KubernetesSide(number, request.getfixturevalue("plane"))
    else:
        made = OwnSide(number, request.param == "simulated")
    await made.start()
    yield made
    await made.close()


@pytest.fixture(params=["memory", "nats"])
async def bus(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bus]:
    if request.param == "memory":
        yield MemoryBus()
        return
    settings = ServerSettings(tmp_path, free_port(), "secret")
    process = await asyncio.create_subprocess_exec(
        *command(settings), stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    await wait_until_open(settings.host, settings.port)
    connected = await JetStreamBus.connect(settings.url, "test", token="secret")
    try:
        yield connected
    finally:
        await connected.close()
        process.kill()
        await process.wait()
