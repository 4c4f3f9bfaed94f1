"""Tells the NATS server beside it that its certificate is another one: ``python3 -IS reloader.py FOLDER``.

It needs nothing but Python, sees the server's process, and is of the same user. A server that is told reads its configuration and
its certificates again, and keeps its connections.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

PAUSE_SECONDS = 2.0
SERVER = "nats-server"


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


def look(folder: Path, known: dict[str, bytes], processes: Path = Path("/proc")) -> dict[str, bytes]:
    """What is in ``folder`` now; where that is not ``known`` the servers are told."""
    now = content(folder)
    if now != known:
        told = list(servers(processes))
        for pid in told:
            os.kill(pid, signal.SIGHUP)
        print(json.dumps({"event": "server_told", "pids": told}), flush=True)
    return now


def watch(folder: Path) -> None:
    """Look for ever. A server that starts just now reads the newest files by itself."""
    known = content(folder)
    while True:
        time.sleep(PAUSE_SECONDS)
        now = look(folder, known)
        if now != known:  # once more: a signal to a server that is busy may be passed over
            time.sleep(PAUSE_SECONDS)
            now = look(folder, known)
        known = now


if __name__ == "__main__":
    watch(Path(sys.argv[1]))
