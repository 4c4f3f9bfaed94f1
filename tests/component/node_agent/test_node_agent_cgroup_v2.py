"""Version 2 control groups of this machine, as far as it has them: groups and their processes, with or without controllers."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from node_agent.domain.limits import Limits
from node_agent.runtime.cgroup_v2 import CgroupV2
from node_agent.runtime.cgroups import Cgroups


@pytest.fixture
def cgroups() -> Iterator[Cgroups]:
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    roots = [Path(fields[1]) for fields in mounts if fields[2] == "cgroup2"]
    if not roots or not os.access(roots[0], os.W_OK):
        pytest.skip("no version 2 hierarchy that may be written")
    found = Cgroups(CgroupV2(roots[0], f"tidegate-test-{os.getpid()}"))
    yield found
    found.release()


def test_processes_join_a_group_by_themselves_and_are_killed_and_removed_with_it(cgroups: Cgroups) -> None:
    cgroups.make("pod", Limits())
    cgroups.make("pod/main", Limits())
    (file,) = cgroups.process_files("pod/main")
    join = f"echo 0 > {file}; echo joined; sleep 1000 & sleep 1000"
    with subprocess.Popen(["sh", "-c", join], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "joined\n"
        assert str(process.pid) in Path(file).read_text().split()
        assert not cgroups.remove("pod/main"), "it is busy"
        assert cgroups.kill("pod") >= 1
        assert process.wait(5) == -9
    deadline = time.monotonic() + 60
    while not cgroups.remove("pod") and time.monotonic() < deadline:
        cgroups.kill("pod")
    assert not Path(file).parent.exists()
