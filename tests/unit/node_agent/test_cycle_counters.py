"""Cycles per instruction of groups: how counters are kept, what is made of them, and what a kernel without them answers."""

import errno
import logging
import os
import time
from pathlib import Path

import pytest
from tests.unit.node_agent.colocation.conftest import pod

from node_agent.close_look import CloseLook
from node_agent.domain.colocation.groups import Group, Tier
from node_agent.domain.colocation.node_slo import node_slo
from node_agent.inventory.processors import online_cpus
from node_agent.runtime import task_stretches
from node_agent.runtime.cycle_counters import MOST_DESCRIPTORS, CycleCounters, PerfPair
from node_agent.runtime.syscalls import PERF_SOFTWARE
from node_agent.runtime.use_files import UseFiles, UsePaths

MILLION = 1_000_000


class Processor:
    """Counts what was recorded: cycles and instructions by CPU."""

    def __init__(self) -> None:
        self.counts = {0: (1600 * MILLION, 800 * MILLION), 1: (400 * MILLION, 200 * MILLION)}
        self.open = self.asked = 0
        self.refuses = 0

    def counter(self, group: int, cpu: int) -> "Recorded":
        self.asked += 1
        if self.refuses:
            raise OSError(self.refuses, os.strerror(self.refuses))
        self.open += 1
        return Recorded(self, cpu)


class Recorded:
    def __init__(self, processor: Processor, cpu: int) -> None:
        self.processor, self.cpu = processor, cpu

    def read(self) -> tuple[int, int]:
        return self.processor.counts[self.cpu]

    def close(self) -> None:
        self.processor.open -= 1


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("web", "db", "besteffort"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cpu.stat").write_text("usage_usec 1000000\n")
    return tmp_path


def test_a_group_has_a_counter_on_each_cpu_for_as_long_as_it_is_asked_for(root: Path) -> None:
    processor = Processor()
    counters = CycleCounters(root, [0, 1], processor.counter)
    whole = (2000 * MILLION, 1000 * MILLION)
    assert counters.counted(["web", "db", "gone"]) == {"web": whole, "db": whole}
    assert (processor.open, processor.asked) == (4, 4)
    assert counters.counted(["web"]) == {"web": whole} and (processor.open, processor.asked) == (2, 4)
    assert counters.counted([]) == {} and processor.open == 0


def test_a_kernel_that_counts_nothing_is_asked_once(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    processor = Processor()
    processor.refuses = errno.ENOENT
    counters = CycleCounters(root, [0, 1], processor.counter)
    with caplog.at_level(logging.DEBUG):
        assert [counters.counted(["web", "db"]) for _ in range(3)] == [{}, {}, {}]
    assert processor.asked == 1 and [record.message for record in caplog.records] == ["cycles_not_counted"]
    assert CycleCounters(None, [0], processor.counter).counted(["web"]) == {} and processor.asked == 1


def test_no_more_descriptors_are_open_than_may_be(root: Path) -> None:
    processor = Processor()
    many = MOST_DESCRIPTORS // 2 - 1
    processor.counts = dict.fromkeys(range(many), (1, 1))
    assert list(CycleCounters(root, range(many), processor.counter, 4 * MOST_DESCRIPTORS).counted(["web", "db"])) == [
        "web"
    ]
    assert list(CycleCounters(root, [0, 1], processor.counter, 11).counted(["web", "db"])) == ["web"], "half of 11"


def unified() -> Path:
    """A hierarchy that can count by group on this machine."""
    lines = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    root = next((Path(folder) for _, folder, kind, *_ in lines if kind == "cgroup2"), None)
    if root is None:
        pytest.skip("no cgroup version 2 is mounted")
    return root


def test_this_kernel_counts_or_says_why_not() -> None:
    group = os.open(unified(), os.O_RDONLY | os.O_DIRECTORY)
    try:
        pair = PerfPair(group, online_cpus()[0])
    except OSError as error:
        assert error.errno in (errno.ENOENT, errno.EACCES, errno.EPERM, errno.EOPNOTSUPP)
    else:
        assert min(pair.read()) >= 0
        pair.close()
    finally:
        os.close(group)


def test_the_call_is_understood_by_kernels_without_such_counters_too() -> None:
    """Two clocks of the kernel's own are opened and read in the same way as cycles and instructions."""

    def clocks(group: int, cpu: int) -> PerfPair:
        try:
            return PerfPair(group, cpu, PERF_SOFTWARE)
        except PermissionError:
            pytest.skip("counting by group takes root")

    counters = CycleCounters(unified(), online_cpus(), clocks)
    before = counters.counted(["."])["."]
    until = time.process_time() + 0.05
    while time.process_time() < until:
        pass
    after = counters.counted(["."])["."]
    assert after[0] - before[0] > 20_000_000 and after[1] >= before[1], "nanoseconds, at least those that this test ran"
    assert counters.counted([]) == {}


class Folders:
    own = True

    def folder(self, group: Group) -> str:
        return group.pod or (group.tier.value if group.tier is Tier.BEST_EFFORT else "")

    def program(self, group: str) -> str:
        return group


def test_what_online_pods_needed_is_told_while_best_effort_is_beside_them(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processor = Processor()
    look = CloseLook(Folders(), UseFiles(UsePaths(2, root, root, root, root)))
    monkeypatch.setattr(look, "_counters", CycleCounters(root, [0, 1], processor.counter))
    slo = node_slo({"resourceUsedThresholdWithBE": {"enable": True}})
    alone = {"web": pod("web", "LS", 9500)}
    both = {**alone, "besteffort": pod("besteffort", "BE")}
    look.look(both, slo, 10_000)
    assert processor.open == 2, "best effort itself is not counted"
    processor.counts[0] = (1600 * MILLION + 36 * MILLION, 800 * MILLION + 20 * MILLION)
    sample = look.look(both, slo, 11_000)
    assert sample is not None and sample.stalls["web"].cpi == 1800
    processor.counts[1] = (401 * MILLION, 201 * MILLION)
    sample = look.look(both, slo, 12_000)
    assert sample is not None and sample.stalls["web"].cpi == 0, "too few instructions to tell"
    look.look(alone, slo, 13_000)
    assert processor.open == 0


def test_where_no_cycles_are_counted_it_is_told_for_how_long_pods_compute_at_a_time(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "web").mkdir(exist_ok=True)
    (root / "web/cgroup.procs").write_text("7\n")
    waits = {"7": 100}
    look = CloseLook(Folders(), UseFiles(UsePaths(2, root, root, root)))
    monkeypatch.setattr(task_stretches, "tasks_of", lambda processes: [str(process) for process in processes])
    read: list[str] = []

    def read_of(task: str, name: str) -> bytes:
        read.append(name)
        return b"x\nvoluntary_ctxt_switches:\t%d\n" % waits[task]

    monkeypatch.setattr(task_stretches, "read_of", read_of)
    slo = node_slo({"resourceUsedThresholdWithBE": {"enable": True}})
    pods = {name: pod(name, qos) for name, qos in (("web", "LS"), ("besteffort", "BE"))}

    def stretch(used_us: int, waited: int, now: int) -> int:
        (root / "web/cpu.stat").write_text(f"usage_usec {used_us}\n")
        waits["7"] = waited
        sample = look.look(pods, slo, now)
        return sample.stalls["web"].stretch if sample is not None else -1

    found = [stretch(0, 100, 10_000), stretch(120_000, 400, 11_000), stretch(240_000, 700, 12_000)]
    assert found == [-1, 0, 400], "it is counted from when the pod began to work"
    assert stretch(360_000, 740, 13_000) == 0, "too few waits tell nothing"
    asked = len(read)
    assert [stretch(361_000, 800, 14_000), len(read)] == [0, asked], "who does nothing is not looked at"
