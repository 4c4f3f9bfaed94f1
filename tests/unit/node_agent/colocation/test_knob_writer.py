"""Putting rules in force: only what is not so, in an order that the kernel takes, and again what somebody else changed."""

import errno
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from node_agent.domain.colocation.memory_protection import Watermark
from node_agent.domain.colocation.resctrl import Schemata
from node_agent.runtime.cache_groups import CacheGroups
from node_agent.runtime.knob_files import KnobFilesV1, KnobFilesV2, NotKnown
from node_agent.runtime.knob_writer import KnobWriter
from node_agent.runtime.memory_reclaim import MemoryReclaim
from node_agent.runtime.task_stretches import MOST_TASKS, TaskStretches
from node_agent.runtime.task_waits import TaskWaits
from node_agent.runtime.use_files import UseFiles, UsePaths


class Kernel:
    """Files that a rule of the kernel's is about; ``refuses`` tells what it does not take now."""

    def __init__(self) -> None:
        self.texts: dict[tuple[str, str], str] = {}
        self.writes: list[tuple[str, str, str]] = []
        self.refuses: Any = lambda folder, name, text: None

    def write(self, folder: str, name: str, text: str) -> None:
        error = self.refuses(folder, name, text)
        if error:
            raise error
        self.writes.append((folder, name, text))
        self.texts[folder, name] = text

    def read(self, folder: str, name: str) -> str | None:
        return self.texts.get((folder, name))

    def tasks(self, folder: str) -> list[int]:
        return []


def test_what_is_so_already_is_not_written_again() -> None:
    kernel = Kernel()
    writer = KnobWriter(kernel)
    wanted = {"a": {"cpu.max": "1 100000", "cpu.weight": "5"}}
    assert [writer.write(wanted) for _ in range(2)] == [2, 0]
    assert writer.write({"a": {"cpu.max": "2 100000", "cpu.weight": "5"}}) == 1


def test_what_somebody_else_wrote_is_seen_when_it_is_looked_at_and_put_right() -> None:
    kernel = Kernel()
    writer = KnobWriter(kernel)
    writer.write({"a": {"cpu.max": "1 100000"}})
    kernel.texts["a", "cpu.max"] = "max 100000"
    assert writer.write({"a": {"cpu.max": "1 100000"}}) == 0
    assert writer.write({"a": {"cpu.max": "1 100000"}}, look=True) == 1


def test_a_file_that_waits_for_another_is_written_after_it() -> None:
    """A child has to have no more than its parent, which has to have no less: whichever of them comes first."""
    kernel = Kernel()

    def refuses(folder: str, name: str, text: str) -> OSError | None:
        parent = int(kernel.texts.get(("p", "cpu.max"), "10"))
        return OSError(22, "Invalid argument") if folder == "p/c" and int(text) > parent else None

    kernel.refuses = refuses
    writer = KnobWriter(kernel)
    assert writer.write({"p/c": {"cpu.max": "20"}, "p": {"cpu.max": "30"}}) == 2
    assert writer.refused == {}
    writer.write({"p/c": {"cpu.max": "50"}, "p": {"cpu.max": "30"}})
    assert writer.refused == {("p/c", "cpu.max"): "cpu.max=50: Invalid argument"}
    assert writer.write({"p/c": {"cpu.max": "25"}, "p": {"cpu.max": "30"}}) == 1 and writer.refused == {}


def test_a_group_that_is_gone_is_no_trouble_and_is_written_when_it_is_back() -> None:
    kernel = Kernel()
    kernel.refuses = lambda *_: FileNotFoundError(2, "gone")
    writer = KnobWriter(kernel)
    writer.write({"a": {"cpu.max": "1"}})
    assert writer.refused == {}
    kernel.refuses = lambda *_: None
    writer.write({"a": {"cpu.max": "1"}}, look=True)
    assert kernel.texts == {("a", "cpu.max"): "1"}


def test_what_a_kernel_cannot_do_is_tried_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    kernel = Kernel()
    asked = []
    kernel.refuses = lambda folder, name, text: asked.append(name) or NotKnown("no memory.low here")
    writer = KnobWriter(kernel)
    for _ in range(3):
        writer.write({"a": {"memory.low": "1"}})
    assert asked == ["memory.low"]
    assert [record.message for record in caplog.records] == ["rule_not_in_force"]


REFUSALS = (
    *(OSError(number, os.strerror(number)) for number in (errno.EINVAL, errno.EACCES, errno.EBUSY, errno.EROFS, errno.ENODEV)),
    ValueError("nothing that could be read"),
    KeyError("rbps"),
)  # fmt: skip


@pytest.mark.parametrize("error", REFUSALS, ids=repr)
def test_a_refused_file_is_told_once_with_its_name_and_tried_again_and_keeps_no_other_from_being_written(
    caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    kernel = Kernel()
    kernel.refuses = lambda folder, name, text: error if name == "cpu.max" else None
    writer = KnobWriter(kernel)
    wanted = {"a": {"cpu.max": "1 100000", "cpu.weight": "5"}, "b": {"cpu.weight": "7"}}
    for turn in range(25):
        writer.write(wanted, look=turn % 10 == 1)
    assert kernel.texts == {("a", "cpu.weight"): "5", ("b", "cpu.weight"): "7"}
    (told,) = caplog.records
    assert (told.__dict__["group"], told.__dict__["file"]) == ("a", "cpu.max") and "cpu.max=1 100000" in told.__dict__[
        "error"
    ]
    kernel.refuses = lambda *_: None
    assert writer.write(wanted) == 0
    assert writer.write(wanted, look=True) == 1 and kernel.texts["a", "cpu.max"] == "1 100000"


def test_what_a_kernel_lacks_is_not_told_again_when_files_are_looked_at(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a").mkdir()
    writer = KnobWriter(KnobFilesV2(tmp_path))
    for _ in range(3):
        writer.write({"a": {"cpu.idle": "1"}}, look=True)
    assert [record.message for record in caplog.records] == ["rule_not_in_force"]


def test_names_of_version_2_mean_files_of_version_1(tmp_path: Path) -> None:
    for controller, names in {
        "cpu": ("cpu.shares", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.cfs_burst_us"),
        "memory": ("memory.limit_in_bytes",),
        "blkio": tuple(f"blkio.throttle.{way}_{what}_device" for way in ("read", "write") for what in ("bps", "iops")),
    }.items():
        (tmp_path / controller / "a").mkdir(parents=True)
        for name in names:
            (tmp_path / controller / "a" / name).write_text("")
    files = KnobFilesV1({name: tmp_path / name for name in ("cpu", "memory", "blkio")})
    for name, text in {
        "cpu.max": "2000 100000",
        "cpu.weight": "20",
        "cpu.shares": "512",
        "memory.max": "max",
        "io.max": "8:0 rbps=5 wbps=max riops=max wiops=7",
    }.items():
        files.write("a", name, text)
    assert (tmp_path / "cpu/a/cpu.cfs_quota_us").read_text() == "2000"
    assert (tmp_path / "cpu/a/cpu.shares").read_text() == "512"
    assert (tmp_path / "memory/a/memory.limit_in_bytes").read_text() == "-1"
    assert (tmp_path / "blkio/a/blkio.throttle.read_bps_device").read_text() == "8:0 5"
    assert (tmp_path / "blkio/a/blkio.throttle.write_bps_device").read_text() == "8:0 0"
    assert files.read("a", "cpu.max") == "2000 100000"
    for name in ("memory.low", "cpu.idle", "cpuset.cpus"):
        with pytest.raises(NotKnown):
            files.write("a", name, "1")
    with pytest.raises(FileNotFoundError):
        files.write("gone", "cpu.max", "1 100000")


def test_cpu_sets_of_version_1_move_without_a_group_ever_having_less_than_its_children(tmp_path: Path) -> None:
    """The kernel refuses that; here the files only show in which order they were written."""
    (tmp_path / "tier/pod").mkdir(parents=True)
    for folder in ("tier", "tier/pod"):
        (tmp_path / folder / "cpuset.cpus").write_text("0-1")
    seen: list[tuple[str, str]] = []
    original = Path.write_text

    def noted(self: Path, text: str) -> int:
        seen.append((str(self.parent.relative_to(tmp_path)), text))
        return original(self, text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "write_text", noted)
        KnobFilesV1({"cpuset": tmp_path}).write("tier", "cpuset.cpus", "2-3")
    assert seen == [("tier", "0-3"), ("tier/pod", "0-3"), ("tier/pod", "2-3"), ("tier", "2-3")]


def test_lists_of_disks_are_written_line_by_line_and_an_empty_set_is_all(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for name in ("io.max", "cpuset.cpus"):
        (tmp_path / "a" / name).write_text("")
    files = KnobFilesV2(tmp_path)
    files.write("a", "io.max", "8:0 rbps=1\n8:16 rbps=2")
    assert (tmp_path / "a/io.max").read_text() == "8:16 rbps=2"
    files.write("a", "cpuset.cpus", "")
    assert (tmp_path / "a/cpuset.cpus").read_text() == "\n"
    assert files.read("a", "io.max") is None


def test_open_files_are_read_again_and_closed_when_their_group_is_gone(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/cpu.stat").write_text("usage_usec 5\nnr_periods 9\nnr_throttled 4\nthrottled_usec 1\n")
    (tmp_path / "a/memory.current").write_text("5000\n")
    (tmp_path / "a/memory.stat").write_text("anon 1\ninactive_file 1000\nactive_file 7\n")
    (tmp_path / "a/cpu.pressure").write_text(
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=77\nfull avg10=0.00 total=9\n"
    )
    files = UseFiles(UsePaths(2, tmp_path, tmp_path, tmp_path))
    before = len(list(Path("/proc/self/fd").iterdir()))
    assert (files.cpu_ns("a"), files.throttled("a"), files.memory_bytes("a")) == (5000, (4, 9), 4000)
    assert (files.stall_us("a", "cpu"), files.stall_us("a", "io"), files.cpu_ns("b")) == (77, 0, None)
    (tmp_path / "a/cpu.stat").write_text("usage_usec 6\n")
    assert files.cpu_ns("a") == 6000
    files.forget_others()
    assert len(list(Path("/proc/self/fd").iterdir())) == before + 4
    files.forget_others()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    files.close()


def test_memory_above_its_mark_is_taken_back_in_the_background(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name, used in (("full", 95), ("calm", 80)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "memory.current").write_text(f"{used}\n")
        (tmp_path / name / "memory.reclaim").write_text("")
    marks = {name: Watermark(90, 2) for name in ("gone", "full", "calm")}
    reclaim = MemoryReclaim(KnobFilesV2(tmp_path))
    reclaim.start(marks)
    until = time.monotonic() + 10
    while not (tmp_path / "full/memory.reclaim").read_text():
        assert time.monotonic() < until
        time.sleep(0.01)
    assert (tmp_path / "full/memory.reclaim").read_text() == "7"
    assert (tmp_path / "calm/memory.reclaim").read_text() == "" and caplog.records == []
    (tmp_path / "full/memory.reclaim").unlink()
    for _ in range(3):
        reclaim.round(marks)
        reclaim.start({})
    assert [record.message for record in caplog.records].count("memory_not_reclaimed") == 3
    before = len(caplog.records)
    reclaim.start(marks)
    assert len(caplog.records) == before, "a kernel that cannot do it is not asked again"


def test_parts_of_the_cache_are_written_once_and_taken_back(tmp_path: Path) -> None:
    """On folders that stand for resctrl: hardware that has it is rare."""
    tasks = {"web": [7], "hog": [8, 9]}
    caches = CacheGroups(lambda uid: tasks[uid], tmp_path)
    caches.write(Schemata({}, {}))
    assert list(tmp_path.iterdir()) == []
    wanted = Schemata({"LS": ("L3:0=ff",), "BE": ("L3:0=f", "MB:0=30")}, {"LS": ("web",), "BE": ("hog",)})
    caches.write(wanted)
    best_effort = tmp_path / "tidegate-BE"
    assert (best_effort / "schemata").read_text() == "MB:0=30\n" and (best_effort / "tasks").read_text() == "9"
    for folder in tmp_path.iterdir():
        for file in folder.iterdir():
            file.unlink()
    tasks["hog"].append(10)
    caches.write(wanted)
    assert {file.name for file in best_effort.iterdir()} == {"tasks"} and (best_effort / "tasks").read_text() == "10"
    (best_effort / "tasks").unlink()
    caches.write(Schemata({}, {}))
    assert list(tmp_path.iterdir()) == []


def test_a_part_of_the_cache_that_was_refused_is_told_once_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caches, wanted = CacheGroups(lambda uid: [], tmp_path), Schemata({"BE": ("L3:0=f",)}, {"BE": ("hog",)})
    (tmp_path / "tidegate-BE/schemata").mkdir(parents=True)  # a folder takes no text
    for _ in range(3):
        caches.write(wanted)
    assert [record.message for record in caplog.records] == ["cache_part_not_in_force"]
    (tmp_path / "tidegate-BE/schemata").rmdir()
    caches.write(wanted)
    assert (tmp_path / "tidegate-BE/schemata").read_text() == "L3:0=f\n"


def test_parts_of_the_cache_that_a_killed_agent_left_are_taken_back(tmp_path: Path) -> None:
    (tmp_path / "tidegate-BE").mkdir()
    (tmp_path / "of-somebody-else").mkdir()
    CacheGroups(lambda uid: [], tmp_path).write(Schemata({}, {}))
    assert [folder.name for folder in tmp_path.iterdir()] == ["of-somebody-else"]


def test_tasks_that_wait_for_a_cpu_are_told_of_where_groups_are_not(tmp_path: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    spin = f"import os\nos.sched_setaffinity(0, {{{cpu}}})\nwhile True: pass"
    processes = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(3)]
    try:
        waits = TaskWaits()
        assert waits.waited_us("web", [processes[0].pid]) == 0
        until = time.monotonic() + 10
        waited = 0
        while waited < 50_000 and time.monotonic() < until:
            time.sleep(0.1)
            waits.begin()
            waited = waits.waited_us("web", [processes[0].pid, 1 << 30])
        assert waited >= 50_000
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_how_often_tasks_wait_is_counted_from_when_they_are_seen_first_unless_they_are_too_many() -> None:
    sleeper = "import time\nwhile True: time.sleep(0.002)"
    processes = [subprocess.Popen([sys.executable, "-c", sleeper]) for _ in range(2)]
    spinner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        stretches = TaskStretches()
        assert stretches.waits("web", [processes[0].pid]) == 0
        until = time.monotonic() + 10
        counted: int | None = 0
        while counted is not None and counted < 100 and time.monotonic() < until:
            time.sleep(0.05)
            stretches.begin()
            before = counted
            counted = stretches.waits("web", [one.pid for one in processes] + [1 << 30])
        assert counted is not None and counted >= 100 > (before or 0)
        time.sleep(0.5)
        stretches.begin()
        assert (stretches.waits("batch", [spinner.pid]) or 0) == 0, "who never waits is not counted"
        assert stretches.waits("many", [spinner.pid] * MOST_TASKS) is None
    finally:
        for process in (*processes, spinner):
            process.kill()
            process.wait()
