"""One supervised process: it is kept running, it is stopped for certain, and it does not outlive its supervisor."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bus import host_ports
from bus.host_ports import free_ports
from tidegate_cli.supervisor.child import Child
from tidegate_cli.supervisor.plan import Program

SLEEP = ("sleep", "100000")


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


async def until(holds: Callable[[], object], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.01)


async def test_a_process_that_is_killed_is_started_again(tmp_path: Path) -> None:
    said: list[str] = []
    child = Child(Program("part", SLEEP), tmp_path, said.append)
    keeping = asyncio.create_task(child.keep_running())
    await until(lambda: child.pid)
    first = child.pid
    os.kill(first, signal.SIGKILL)
    await until(lambda: child.pid not in (0, first))
    assert child.restarts == 1 and "part ended with signal SIGKILL; starting it again" in said[0]
    await child.stop(1.0)
    await keeping
    assert child.pid == 0


async def test_a_process_that_has_to_yield_does_and_so_does_its_session(tmp_path: Path) -> None:
    child = Child(Program("part", SLEEP, niceness=5), tmp_path, lambda _: None)
    keeping = asyncio.create_task(child.keep_running())
    await until(lambda: child.pid)
    assert os.getpriority(os.PRIO_PROCESS, child.pid) == min(os.getpriority(os.PRIO_PROCESS, 0) + 5, 19)
    session = Path(f"/proc/{child.pid}/autogroup")
    assert not session.exists() or session.read_text().endswith("nice 5\n")  # noqa: ASYNC240
    await child.stop(1.0)
    await keeping


@pytest.mark.parametrize("turns", range(8))
async def test_a_stop_while_the_process_is_just_being_started_ends_it(tmp_path: Path, turns: int) -> None:
    child = Child(Program("part", SLEEP), tmp_path, lambda _: None)
    keeping = asyncio.create_task(child.keep_running())
    for _ in range(turns):
        await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await child.stop(1.0)
        await keeping
    assert child.pid == 0


async def test_a_process_that_cannot_be_started_is_tried_again(tmp_path: Path) -> None:
    """Its program is not there for a while."""
    said: list[str] = []
    program = tmp_path / "program"
    child = Child(Program("part", (str(program),)), tmp_path, said.append)
    keeping = asyncio.create_task(child.keep_running())
    await until(lambda: said)
    assert "part ended with No such file or directory before it began" in said[0]
    program.write_text("#!/bin/sh\nexec sleep 100000\n")
    program.chmod(0o700)
    await until(lambda: child.pid)
    await child.stop(1.0)
    await keeping


async def test_a_process_that_does_not_listen_is_killed_after_its_grace(tmp_path: Path) -> None:
    stubborn = ("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done")
    child = Child(Program("part", stubborn), tmp_path, lambda _: None)
    keeping = asyncio.create_task(child.keep_running())
    await until(lambda: (tmp_path / "part.log").exists() and (tmp_path / "part.log").read_text())
    async with asyncio.timeout(60):
        await child.stop(0.2)
        await keeping
    assert child.pid == 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_process_outlives_its_supervisor(tmp_path: Path, number: signal.Signals) -> None:
    program = f"""
import asyncio, pathlib, signal, sys
from tidegate_cli.supervisor.child import Child
from tidegate_cli.supervisor.plan import Program
program = Program("part", ("sleep", "100000"), when_orphaned=signal.Signals({int(number)}))
child = Child(program, pathlib.Path({str(tmp_path)!r}), print)
async def main():
    keeping = asyncio.create_task(child.keep_running())
    while not child.pid:
        await asyncio.sleep(0.01)
    print(child.pid, flush=True)
    await keeping
asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as supervisor:
        assert supervisor.stdout is not None
        pid = int(supervisor.stdout.readline())
        assert is_alive(pid)
        supervisor.kill()
    limit = time.monotonic() + 60
    while is_alive(pid):
        assert time.monotonic() < limit, "it runs on"
        time.sleep(0.01)


def test_a_port_that_is_spoken_for_is_not_given_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody listens there yet, so it looks free."""
    first, second, third = sorted(free_ports(3))
    monkeypatch.setattr(host_ports, "_candidates", lambda: [first, second, third])
    assert free_ports(2, besides={first}) == [second, third]


def test_ports_for_servers_are_none_that_a_connection_may_be_given() -> None:
    """A client that tries to reach a server that is away could else be connected to itself."""
    end = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found = free_ports(20)
    assert len(set(found)) == 20 and (end < 2_100 or all(port < end for port in found))
