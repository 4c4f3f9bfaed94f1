"""Tells the NATS server beside it that its certificate is another one, until it has read that: ``python3 -IS reloader.py FOLDER``.

It needs nothing but Python, sees the server's process, and is of the same user. A server that is told reads its configuration and
its certificates again, and keeps its connections.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException
from pathlib import Path

PAUSE_SECONDS = 2.0
SERVER = "nats-server"
MONITOR = 8222
"""The port at which the server tells of itself, as the chart sets it."""


def content(folder: Path) -> dict[str, bytes]:
    """The files of ``folder``, a mounted Secret, by name."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def servers(processes: Path) -> Iterator[int]:
    """The process ids of all servers that can be seen."""
    for folder in processes.iterdir():
        try:
            if folder.name.isdigit() and (folder / "comm").read_text().strip() == SERVER:
                yield int(folder.name)
        except OSError:  # it has just ended
            continue


def loaded_at(monitor: int) -> str:
    """When the server that is watched at this port read its configuration last; empty where it does not say."""
    connection = HTTPConnection("127.0.0.1", monitor, timeout=PAUSE_SECONDS)
    try:
        connection.request("GET", "/varz")
        return str(json.load(connection.getresponse())["config_load_time"])
    except (OSError, HTTPException, ValueError):
        return ""
    finally:
        connection.close()


def look(folder: Path, known: dict[str, bytes], monitor: int, processes: Path = Path("/proc")) -> dict[str, bytes]:
    """What of ``folder`` the server has read; where that is not ``known`` it was told just now.

    A signal to a server that is busy may be passed over: whoever gets ``known`` back although the files are others looks again.
    """
    now = content(folder)
    if now == known or not (before := loaded_at(monitor)):
        return known
    told = list(servers(processes))
    for pid in told:
        os.kill(pid, signal.SIGHUP)
    until = time.monotonic() + PAUSE_SECONDS
    while not (is_read := loaded_at(monitor) not in ("", before)) and time.monotonic() < until:
        time.sleep(0.1)
    print(json.dumps({"event": "server_told", "pids": told, "is_read": is_read}), flush=True)
    return now if is_read else known


def watch(folder: Path) -> None:
    """Look for ever. A server that starts just now reads the newest files by itself."""
    known = content(folder)
    while True:
        time.sleep(PAUSE_SECONDS)
        known = look(folder, known, MONITOR)


if __name__ == "__main__":
    watch(Path(sys.argv[1]))
