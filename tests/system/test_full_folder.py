"""The data folder has no room left: nothing is half done, the user is told, and all goes on when there is room again."""

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tidegate_system_gangs import MEMBERS, clean, fail_one, is_whole, ring

from tidegate.client import Refused

pytestmark = [pytest.mark.system, pytest.mark.timeout(400)]

ROOM = "160m"


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
        system.apply(ring("before"), ring("bystander"))
        system.finally_right(lambda: is_whole(system, ["before", "bystander"]))
        before = system.pod_processes()
        filler = fill(small_folder)
        for name in ("full-1", "full-2"):
            with pytest.raises(Refused, match=r"data folder .* is full: 0 MiB are free, 64 MiB are needed"):
                system.patiently(lambda name=name: system.client.apply([ring(name)]))
        fail_one(system, "bystander")  # something has to be noted, and there is no room for it
        time.sleep(3)
        kept = [uid for uid, pids in system.pod_processes().items() if before.get(uid) == pids]
        assert len(kept) == 2 * MEMBERS - 1, "a pod that has nothing to do with it has ended"
        assert [one["metadata"]["name"] for one in system.all_of("jobs.batch.volcano.sh")] == ["before", "bystander"]
        filler.unlink()
        system.apply(ring("after"))
        system.finally_right(lambda: is_whole(system, ["before", "after"]) + is_whole(system, ["bystander"], 1))
        clean(system, ["before", "bystander", "after"])


def test_a_system_in_a_full_folder_can_be_stopped(small_folder: Path, system_in) -> None:
    """Its pods end though nothing of it can be written down; when there is room it starts again and knows of them."""
    with system_in(small_folder) as system:
        system.apply(ring("lasting"))
        system.finally_right(lambda: is_whole(system, ["lasting"]))
        filler = fill(small_folder)
        system.stop()
        filler.unlink()
        system.start()
        system.finally_right(lambda: is_whole(system, ["lasting"], restarts=1))
        clean(system, ["lasting"])
