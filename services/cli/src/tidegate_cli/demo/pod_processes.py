"""Processes of this machine: the one that is a pod's container, and those that a system left behind."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

_PREFIX = "process://"
_POD_MARK = "TIDEGATE_POD_UID"


def kill_container(container_id: str, pod_uid: str) -> int:
    """Kill the process of a running container, as a crash would; returns its process id.

    Raises ValueError when the id names no process of this pod: what has taken a number over is nobody's to kill.
    """
    number = container_id.removeprefix(_PREFIX)
    if not container_id.startswith(_PREFIX) or not number.isdigit():
        raise ValueError(f"container {container_id!r} is no process of this machine")
    if f"{_POD_MARK}={pod_uid}".encode() not in _read(Path("/proc") / number / "environ").split(b"\0"):
        raise ValueError(f"process {number} is not one of the pod's")
    os.kill(int(number), signal.SIGKILL)
    return int(number)


def left_behind(folder: Path) -> list[str]:
    """The processes that have to do with ``folder``, as ``<pid> <command>``; not this one and those that started it."""
    text = os.fsencode(folder)
    own = set(_ancestors(os.getpid()))
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) not in own and _mentions(entry, text):
            command = _read(entry / "cmdline").replace(b"\0", b" ").decode(errors="replace").strip()
            found.append(f"{entry.name} {command[:80]}")
    return sorted(found)


def _mentions(process: Path, text: bytes) -> bool:
    try:
        place = os.fsencode((process / "cwd").readlink())
    except OSError:
        place = b""
    return place.startswith(text) or text in _read(process / "cmdline") or text in _read(process / "environ")


def _ancestors(pid: int) -> Iterator[int]:
    while pid > 0:
        yield pid
        stat = _read(Path(f"/proc/{pid}/stat"))
        pid = int(stat.rpartition(b")")[2].split()[1]) if stat else 0


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""
