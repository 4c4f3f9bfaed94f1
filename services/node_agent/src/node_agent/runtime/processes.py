"""Processes as /proc shows them: told apart from later ones of the same number by when they started."""

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CLOCK_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """One process. ``started`` is in clock ticks since boot, ``cpu_ticks`` is user and system time."""

    pid: int
    state: str
    parent: int
    session: int
    cpu_ticks: int
    started: int
    memory_pages: int


def inspect(pid: int) -> ProcessInfo | None:
    """The process ``pid``, or None when there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()
    cpu = int(fields[11]) + int(fields[12])
    return ProcessInfo(pid, fields[0], int(fields[1]), int(fields[3]), cpu, int(fields[19]), int(fields[21]))


def start_time(pid: int) -> int:
    """When ``pid`` started, in clock ticks since boot; 0 when it is not there."""
    found = inspect(pid)
    return found.started if found else 0


def is_alive(pid: int, started: int) -> bool:
    """Whether the process that started then still runs (a zombie does not)."""
    found = inspect(pid)
    return found is not None and found.started == started and found.state not in "ZX"


def all_processes() -> Iterator[ProcessInfo]:
    """Every process of the machine that can be seen."""
    for name in os.listdir("/proc"):  # noqa: PTH208  (a Path per process costs ten times as much)
        if name.isdigit():
            found = inspect(int(name))
            if found is not None:
                yield found


def children(parent: int) -> list[int]:
    """The children of ``parent``, zombies left out."""
    return [found.pid for found in all_processes() if found.parent == parent and found.state not in "ZX"]


def open_pidfd(pid: int, started: int) -> int | None:
    """A descriptor that turns readable when the process ends; None when it has ended already."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    if start_time(pid) != started:  # the number had been given to another process before it was opened
        os.close(fd)
        return None
    return fd


def signal_process(pid: int, started: int, number: signal.Signals) -> None:
    """Signal ``pid``, if it is still the process that started then."""
    fd = open_pidfd(pid, started)
    if fd is None:
        return
    try:
        signal.pidfd_send_signal(fd, number)
    except (ProcessLookupError, PermissionError):
        pass
    finally:
        os.close(fd)


def signal_group(pid: int, started: int, number: signal.Signals) -> None:
    """Signal the process group that ``pid`` leads, if it is still the process that started then."""
    if start_time(pid) == started:
        try:
            os.killpg(pid, number)
        except (ProcessLookupError, PermissionError):
            pass


def kill_session(session: int, since: int, mark: str) -> int:
    """SIGKILL all of a session whose leader started at ``since``; returns how many there were.

    The number of a session that has ended may be given to another one: without its leader, only processes that have the
    variable ``mark`` (``NAME=value``) are taken to be of it.
    """
    killed, has_leader = 0, start_time(session) == since
    for found in all_processes():
        if found.session == session and found.state not in "ZX" and (has_leader or _is_marked(found.pid, mark)):
            try:
                os.kill(found.pid, signal.SIGKILL)
                killed += 1
            except (ProcessLookupError, PermissionError):
                pass
    return killed


def _is_marked(pid: int, mark: str) -> bool:
    try:
        return mark.encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
