"""Processes beside a test."""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def process(
    command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> "Iterator[subprocess.Popen[bytes]]":
    """A process in ``folder`` that writes into ``log``, until the end."""
    with log.open("ab") as output:
        started = subprocess.Popen(command, stdout=output, stderr=output, env=environment, cwd=folder)
    try:
        yield started
    finally:
        started.terminate()
        try:
            started.wait(20)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()
