"""The data folder has no room left: nothing is half done, the user is told, and all goes on when there is room again."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tidegate_system_gangs import clean, is_whole, ring

from tidegate.client import ClientError

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]

ROOM = "64m"


@pytest.fixture
def small_folder() -> Iterator[Path]:
    """A file system of its own, as only root may mount one."""
    folder = Path(tempfile.mkdtemp(prefix="tidegate-system-"))
    words = ["mount", "-t", "tmpfs", "-o", f"size={ROOM},mode=711", "tidegate-test", str(folder)]
    mounted = subprocess.run(words, capture_output=True, text=True)
    if mounted.returncode != 0:
        folder.rmdir()
        pytest.skip(f"no file system of its own can be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
        folder.rmdir()


def fill(folder: Path) -> Path:
    """Take all room that is left."""
    filler = folder / "filler"
    descriptor = os.open(filler, os.O_WRONLY | os.O_CREAT)
    for size in (1 << 20, 1 << 12, 1):
        try:
            while os.write(descriptor, b"x" * size):
                pass
        except OSError:
            continue
    os.close(descriptor)
    return filler


def test_a_full_folder_stops_nothing_that_runs_and_loses_nothing(small_folder: Path, system_in) -> None:
    with system_in(small_folder) as system:
        system.apply(ring("before"))
        system.finally_right(lambda: is_whole(system, ["before"]))
        before = system.pod_processes()
        filler = fill(small_folder)
        began = time.monotonic()
        with pytest.raises(ClientError) as refused:
            for number in range(2000):
                system.client.apply([ring(f"full-{number}")])
                time.sleep(0.01)
        print("told after", time.monotonic() - began, number, str(refused.value))
        assert "space" in str(refused.value) or "full" in str(refused.value), str(refused.value)
        assert system.pod_processes().items() >= before.items()
        shown = subprocess.run(
            [sys.executable, "-m", "tidegate_cli.main", "--data-dir", str(small_folder), "status"],
            capture_output=True,
            text=True,
            timeout=30,
        )
        print(shown.stdout, shown.stderr)
        filler.unlink()
        system.apply(ring("after"))
        names = ["before", "after", *(f"full-{done}" for done in range(number))]
        system.finally_right(lambda: is_whole(system, names), 60)
        assert system.pod_processes().items() >= before.items()
        clean(system, names)
