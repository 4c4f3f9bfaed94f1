"""The agent when its folder takes no writes, when it is told old things, and when it has to go while things still come."""

import asyncio
import errno
from typing import Any

import pytest

from node_agent.ports import Assignment
from node_agent.runtime.folders import PodFolder

LONG = ("sh", "-c", "exec sleep 100000")


class Disk:
    """Whether the agent's folder takes writes."""

    full = False


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    made, save = Disk(), PodFolder.save

    def save_if_room(self: PodFolder, name: str, data: Any) -> None:
        if made.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        save(self, name, data)

    monkeypatch.setattr(PodFolder, "save", save_if_room)
    return made


async def test_no_pod_is_begun_that_could_not_be_remembered(bench: Any, disk: Disk) -> None:
    """It waits, says why, and starts when there is room."""
    disk.full = True
    bench.assign(bench.pod("p", *LONG))
    await bench.upstream.until(lambda: "uid-p" in bench.upstream.statuses)
    waiting = bench.upstream.container("uid-p")
    assert waiting["state"]["waiting"] == {
        "reason": "DataFolderFailed",
        "message": "the node cannot write to its data folder: No space left on device",
    }
    assert bench.leftovers("sleep", "100000") == []
    disk.full = False
    await bench.upstream.phase("uid-p", "Running")
    assert bench.upstream.container("uid-p")["restartCount"] == 0


async def test_what_runs_is_ended_and_its_end_told_though_nothing_can_be_written(bench: Any, disk: Disk) -> None:
    pod = bench.pod("p", *LONG, terminationGracePeriodSeconds=1)
    await bench.run(pod, "Running")
    disk.full = True
    bench.assign()
    await bench.upstream.until(lambda: "uid-p" in bench.upstream.gone)
    assert bench.upstream.container("uid-p")["state"]["terminated"]["exitCode"] == 143
    assert bench.leftovers("sleep", "100000") == []
    disk.full = False


@pytest.mark.parametrize("left", ["{", "[]", '{"containers": 5}', '{"containers": {"main": {}}}'])
async def test_a_record_that_makes_no_sense_ends_no_agent_and_starts_nothing_twice(bench: Any, left: str) -> None:
    pod, other = bench.pod("p", *LONG), bench.pod("q", *LONG)
    bench.assign(pod, other)
    for uid in ("uid-p", "uid-q"):
        await bench.upstream.phase(uid, "Running")
    await bench.stop()
    (bench.settings.data_dir / "pods/uid-p/record.json").write_text(left)
    bench.upstream.statuses.clear()
    await bench.start()
    bench.assign(pod, other)
    for uid in ("uid-p", "uid-q"):
        await bench.upstream.phase(uid, "Running")
    assert len(bench.leftovers("sleep", "100000")) == 2


async def test_an_older_assignment_changes_nothing(bench: Any) -> None:
    """A gateway that hung may still say what it knew when its successor has said more."""
    await bench.run(bench.pod("p", *LONG), "Running")
    bench.running.assign(Assignment("node-a", bench.revision - 1, (), {}, {}))
    await asyncio.sleep(0.3)
    assert bench.upstream.statuses["uid-p"]["phase"] == "Running" and len(bench.leftovers("sleep", "100000")) == 1


async def test_an_agent_that_goes_for_good_begins_nothing_more(bench: Any) -> None:
    first, second = bench.pod("first", *LONG), bench.pod("second", *LONG)
    await bench.run(first, "Running")
    draining = asyncio.create_task(bench.running.drain())
    await asyncio.sleep(0)
    bench.assign(first, second)
    async with asyncio.timeout(5):
        await draining
    assert bench.leftovers("sleep", "100000") == [] and "uid-second" not in bench.upstream.statuses


async def test_an_agent_that_is_to_go_at_once_ends_what_its_predecessor_left(bench: Any) -> None:
    await bench.run(bench.pod("p", *LONG), "Running")
    await bench.stop()
    assert len(bench.leftovers("sleep", "100000")) == 1
    starting = asyncio.create_task(bench.start())
    while bench.agent is None or bench.agent._found.is_set():
        await asyncio.sleep(0)
    draining = asyncio.create_task(bench.agent.drain())
    async with asyncio.timeout(10):
        await asyncio.gather(starting, draining)
    assert bench.leftovers("sleep", "100000") == []
