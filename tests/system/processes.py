"""Processes of a system under test, as /proc shows them."""

import ctypes
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

_LIBC = ctypes.CDLL(None)
_DEATH_SIGNAL = 1


def end_with_me() -> None:
    _LIBC.prctl(_DEATH_SIGNAL, signal.SIGTERM)


def processes_of(folder: Path) -> Iterator[tuple[int, str]]:
    """Live processes that have something of ``folder`` in their environment or command, with both as text."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            text = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
            dead = (entry / "stat").read_text().rpartition(")")[2].split()[0] in "ZX"
        except OSError:
            continue
        if not dead and str(folder).encode() in text:
            yield int(entry.name), text.decode(errors="replace")


def started_by(parent: int, service: str) -> int:
    """The child of the supervisor that is this service; waits for one that is being started."""
    word = "nats-server" if service == "nats" else f"{service}.main"
    until = time.monotonic() + 10
    while time.monotonic() < until:
        for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
            try:
                if word in Path(f"/proc/{child}/cmdline").read_text():
                    return int(child)
            except OSError:
                continue
        time.sleep(0.02)
    raise AssertionError(f"{service} does not run")
