"""What the agent writes to and reads from files: control groups, volumes, logs, the inventory."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from kube.cpu_lists import format_cpus, parse_cpus
from node_agent.bus_link import log_piece
from node_agent.domain.limits import Limits
from node_agent.domain.volumes import VolumeFile
from node_agent.inventory import nvml
from node_agent.inventory.declared import InventoryError, read
from node_agent.inventory.gpu_use import GpuUse
from node_agent.inventory.machine import Reserve, find_inventory, links
from node_agent.inventory.parts import MigInstance
from node_agent.inventory.processors import find_cpus, find_memory_bytes, find_numa
from node_agent.node_watch import more_usage
from node_agent.runtime.cgroups import find_cgroups
from node_agent.runtime.log_pieces import MOST_BYTES, LogReader, Piece
from node_agent.runtime.logs import previous_of, prune, rotate, set_aside
from node_agent.runtime.materials import make_inside, write_files, write_hosts
from tidegate.node.v1.node_pb2 import LogRequest


def version_2(root: Path, controllers: str = "cpu memory pids cpuset io") -> Path:
    (root / "unified").mkdir()
    (root / "unified/cgroup.controllers").write_text(controllers)
    mounts = root / "mounts"
    mounts.write_text(f"cgroup2 {root}/unified cgroup2 rw 0 0\n")
    return mounts


def test_version_2_is_written_by_its_file_names(tmp_path: Path) -> None:
    cgroups = find_cgroups("tg", version_2(tmp_path))
    assert (cgroups.version, cgroups.controllers) == (2, ("cpu", "cpuset", "io", "memory", "pids"))
    limits = Limits(1500, 1000, 1 << 30, 99, "0-1")
    assert cgroups.make("u", limits) == [] and cgroups.make("u/main", limits) == []
    pod, leaf = tmp_path / "unified/tg/u", tmp_path / "unified/tg/u/main"
    written = {file.name: file.read_text() for file in leaf.iterdir()}
    assert written == {
        "cpu.weight": "39",
        "cpu.max": "150000 100000",
        "memory.max": str(1 << 30),
        "memory.oom.group": "1",
        "pids.max": "99",
        "cpuset.cpus": "0-1",
    }
    assert (pod / "cgroup.subtree_control").read_text() == "+cpu +cpuset +io +memory +pids"
    assert not (pod / "memory.oom.group").exists() and not (leaf / "cgroup.subtree_control").exists()
    assert cgroups.process_files("u/main") == [str(leaf / "cgroup.procs")]
    assert cgroups.oom_file("u/main") == str(leaf / "memory.events")


def test_version_2_use_is_read_without_what_can_be_taken_back(tmp_path: Path) -> None:
    cgroups = find_cgroups("tg", version_2(tmp_path))
    cgroups.make("u", Limits())
    pod = tmp_path / "unified/tg/u"
    assert cgroups.consumption("u") is None
    (pod / "cpu.stat").write_text("usage_usec 1500\nuser_usec 1000\n")
    (pod / "memory.current").write_text("5000\n")
    (pod / "memory.stat").write_text("anon 100\ninactive_file 2000\n")
    found = cgroups.consumption("u")
    assert found is not None and (found.cpu_ns, found.memory_bytes) == (1_500_000, 3000)


def test_best_efforts_group_is_made_again_when_another_agent_took_it_along(tmp_path: Path) -> None:
    cgroups = find_cgroups("tg", version_2(tmp_path))
    tier = tmp_path / "unified/tg/besteffort"
    assert (tier / "cpu.weight").read_text() == "1"
    shutil.rmtree(tier)
    assert cgroups.make("besteffort/u", Limits()) == []
    assert (tier / "u/cpu.weight").exists() and (tier / "cpu.weight").read_text() == "1"


def test_no_usable_control_groups_are_said_and_change_nothing(tmp_path: Path) -> None:
    cgroups = find_cgroups("tg", version_2(tmp_path, "io"))
    assert cgroups.version == 0 and "no cgroup hierarchy" in cgroups.why
    assert cgroups.make("u", Limits(1)) == [] and cgroups.process_files("u") == [] and cgroups.consumption("u") is None
    assert cgroups.kill("u") == 0 and cgroups.remove("u")


def test_files_of_a_volume_change_all_at_once_and_keep_their_modes(tmp_path: Path) -> None:
    first = (VolumeFile("a", b"1", 0o600), VolumeFile("deep/b", b"2"))
    assert write_files(tmp_path, first, -1, -1)
    assert not write_files(tmp_path, first, -1, -1)
    held = os.open(tmp_path / "..data", os.O_RDONLY | os.O_DIRECTORY)
    assert ((tmp_path / "a").read_text(), (tmp_path / "deep/b").read_text()) == ("1", "2")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600
    assert write_files(tmp_path, (VolumeFile("a", b"3"), VolumeFile("c", b"4")), -1, -1)
    os.close(held)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["..content.2", "..data", "a", "c"]
    assert (tmp_path / "a").read_text() == "3"


def test_a_hosts_file_changes_in_place(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    assert write_hosts(file, "127.0.0.1 a long line\n")
    number = file.stat().st_ino
    assert write_hosts(file, "short\n") and not write_hosts(file, "short\n")
    assert (file.read_text(), file.stat().st_ino) == ("short\n", number)


def test_folders_in_a_volume_are_not_made_behind_its_links(tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "volume/out").symlink_to(tmp_path / "other")
    make_inside(tmp_path / "volume", "out/made")
    make_inside(tmp_path / "volume", "in/side")
    assert list((tmp_path / "other").iterdir()) == []
    assert (tmp_path / "volume/in/side").is_dir()


def test_a_log_is_rotated_when_it_is_too_long_and_old_parts_go(tmp_path: Path) -> None:
    file = tmp_path / "main.log"
    for number in range(4):
        with file.open("a") as stream:
            stream.write(f"{number}\n" * 10)
        assert rotate(file, 15, 3)
        assert file.stat().st_size == 0
    file.write_text("now\n")
    assert not rotate(file, 15, 3)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["main.log", "main.log.1", "main.log.2"]
    assert LogReader(file, 3).first() == Piece(b"3\n3\nnow\n", 4)
    assert LogReader(file).first() == Piece(b"2\n" * 10 + b"3\n" * 10, 0)
    assert LogReader(file, 0).first() == Piece(b"", 4)


def test_logs_of_pods_that_are_gone_go_when_they_are_old(tmp_path: Path) -> None:
    for name in ("ns_p_old", "ns_p_live", "ns_p_young"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "main.log").touch()
        os.utime(tmp_path / name / "main.log", (2000, 2000) if name.endswith("young") else (10, 10))
    prune(tmp_path, {"live"}, before_ms=1_000_000)
    assert sorted(folder.name for folder in tmp_path.iterdir()) == ["ns_p_live", "ns_p_young"]


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Two NUMA nodes of four CPUs, two of which are offline."""
    files = {
        "sys/devices/system/cpu/online": "0-2,4-6",
        "sys/devices/system/node/node0/cpulist": "0-3",
        "sys/devices/system/node/node0/meminfo": "Node 0 MemTotal: 1024 kB\nNode 0 MemFree: 1 kB\n",
        "sys/devices/system/node/node1/cpulist": "4-7",
        "sys/devices/system/node/node1/meminfo": "Node 1 MemTotal: 2048 kB\n",
        "sys/devices/system/node/node2/cpulist": "",
        "sys/bus/pci/devices/0000:1b:00.0/numa_node": "1",
        "sys/bus/pci/devices/0000:1c:00.0/numa_node": "-1",
        "proc/meminfo": "MemTotal:       4096 kB\nMemAvailable:   1000 kB\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    return tmp_path


def test_cpus_memory_and_numa_nodes_are_what_the_kernel_shows(machine: Path) -> None:
    assert find_cpus(machine) == [0, 1, 2, 4, 5, 6]
    assert find_memory_bytes(machine) == 4096 << 10
    assert [(node.index, node.cpus, node.memory_bytes) for node in find_numa(find_cpus(machine), machine)] == [
        (0, "0-2", 1 << 20),
        (1, "4-6", 2 << 20),
    ]


def test_an_agent_in_a_limited_group_reports_its_limits(machine: Path) -> None:
    (machine / "sys/fs/cgroup").mkdir(parents=True)
    (machine / "sys/fs/cgroup/cpu.max").write_text("250000 100000\n")
    (machine / "sys/fs/cgroup/memory.max").write_text("1000000\n")
    assert (find_cpus(machine), find_memory_bytes(machine)) == ([0, 1], 1_000_000)


class Nvml:
    """A library that shows two cards, connected by NVLink, of which the second may be split; ``broken``: there is no driver."""

    class NVMLError(Exception):
        pass

    NVML_NVLINK_MAX_LINKS = 2
    _BUS = ("00000000:1B:00.0", b"00000000:1C:00.0")

    def __init__(self, broken: bool = False, split: bool = False) -> None:
        self.broken, self.split, self.open = broken, split, 0

    def nvmlInit(self) -> None:
        if self.broken:
            raise self.NVMLError
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> str:
        return f"GPU-{handle}" if handle < 10 else f"MIG-{handle}"

    def nvmlDeviceGetName(self, handle: int) -> bytes:
        return b"NVIDIA H200" if handle < 10 else b"NVIDIA H200 MIG 1g.18gb+me"

    def nvmlDeviceGetMigMode(self, handle: int) -> tuple[int, int]:
        if handle == 0:
            raise self.NVMLError
        return int(self.split), 1

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: int) -> int:
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: int, place: int) -> int:
        if place > 1:
            raise self.NVMLError
        return 10 * handle + place

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:
        return type("Memory", (), {"total": 80 << 30, "used": 20 << 30})

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:
        if self.split and handle == 1:
            raise self.NVMLError
        return type("Utilization", (), {"gpu": 37 + handle, "memory": 9})

    def nvmlDeviceGetPciInfo(self, handle: int) -> Any:
        return type("Pci", (), {"busId": self._BUS[handle]})

    def nvmlDeviceGetNvLinkState(self, handle: int, link: int) -> int:
        if link > 0:
            raise self.NVMLError
        return 1

    def nvmlDeviceGetNvLinkRemotePciInfo(self, handle: int, link: int) -> Any:
        return type("Pci", (), {"busId": self._BUS[1 - handle]})


def test_gpus_are_found_with_their_node_and_their_links(machine: Path) -> None:
    library = Nvml()
    gpus = nvml.find_gpus(machine, library)
    assert [(gpu.index, gpu.uuid, gpu.model, gpu.memory_bytes, gpu.numa, gpu.nvlink) for gpu in gpus] == [
        (0, "GPU-0", "NVIDIA H200", 80 << 30, 1, (1,)),
        (1, "GPU-1", "NVIDIA H200", 80 << 30, None, (0,)),
    ]
    assert links(gpus) == [(0, 1)] and library.open == 0
    assert nvml.find_gpus(machine, Nvml(broken=True)) == ()


def test_what_gpus_do_is_told_as_far_as_they_tell_it() -> None:
    """By the library's own interface; a GPU that is split says nothing of its cores, and without a driver there is nothing."""
    memory = {"koordinator.sh/gpu-memory": str(20 << 30), "koordinator.sh/gpu-memory-ratio": "25"}
    whole, split = GpuUse(Nvml(split=True)).devices()
    assert whole == {
        "type": "gpu", "minor": 0, "id": "GPU-0", "resources": {"koordinator.sh/gpu-core": "37", **memory},
    }  # fmt: skip
    assert split["resources"] == memory
    assert GpuUse(Nvml(broken=True)).devices() == [] and GpuUse().devices() == GpuUse().devices()
    told = more_usage({"aggregatedNodeUsages": []}, [], [whole])
    assert told["nodeMetric"] == {"aggregatedNodeUsages": [], "nodeUsage": {"devices": [whole]}}


def test_gpus_in_mig_mode_are_found_with_their_instances(machine: Path) -> None:
    whole, split = nvml.find_gpus(machine, Nvml(split=True))
    assert whole.mig is None
    assert split.mig == (MigInstance("1g.18gb.me", "MIG-10"), MigInstance("1g.18gb.me", "MIG-11"))


def test_instances_are_reported_instead_of_their_gpu(machine: Path) -> None:
    file = machine / "node.yaml"
    file.write_text("gpus: [{memory: 80Gi}, {memory: 80Gi, mig: [{profile: 3g.40gb}, {profile: 3g.40gb, uuid: x}]}]")
    found = find_inventory(Reserve(), machine, file, machine)
    assert (found.capacity["nvidia.com/gpu"], found.capacity["nvidia.com/mig-3g.40gb"]) == (1, 2)
    told = [gpu.get("mig") for gpu in found.devices.topology()["gpus"]]
    assert told == [None, [{"profile": "3g.40gb", "uuid": "MIG-1-0"}, {"profile": "3g.40gb", "uuid": "x"}]]


def test_a_declared_inventory_stands_in_for_the_machine(machine: Path) -> None:
    file = machine / "node.yaml"
    file.write_text(
        """
        cpu: 8
        memory: 64Gi
        numa: [{cpus: "0-3", memory: 32Gi, gpus: [0]}, {cpus: "4-7", memory: 32Gi, gpus: [1]}]
        gpus: [{memory: 80Gi, model: NVIDIA A100}, {memory: 80Gi, model: NVIDIA A100}]
        nvlink: [[1, 0]]
        resources: {example.com/fpga: 2}
        """
    )
    found = find_inventory(Reserve(500, 1 << 30, 50), machine, file, machine)
    assert found.capacity["cpu"] == 8000 and found.allocatable["cpu"] == 7500
    assert found.allocatable["memory"] == 63 << 30 and found.capacity["pods"] == 50
    assert (found.capacity["nvidia.com/gpu"], found.capacity["example.com/fpga"]) == (2, 2)
    assert [(node.cpus, node.gpus) for node in found.devices.numa] == [("0-3", (0,)), ("4-7", (1,))]
    assert found.devices.topology()["nvlink"] == [[0, 1]]
    assert found.labels["nvidia.com/gpu.product"] == "NVIDIA-A100"
    status = found.node_status()
    assert (status["capacity"]["cpu"], status["allocatable"]["cpu"], status["capacity"]["memory"]) == (
        "8",
        "7500m",
        "64Gi",
    )


def test_a_node_that_is_said_to_have_more_than_it_has_is_never_too_busy(machine: Path) -> None:
    real = find_inventory(Reserve(), machine, None, machine)
    assert real.annotations == {}
    file = machine / "node.yaml"
    file.write_text(f"cpu: {real.capacity['cpu'] // 1000 + 1}")
    assert find_inventory(Reserve(), machine, file, machine).annotations == {
        "scheduling.koordinator.sh/usage-thresholds": '{"usageThresholds": {"cpu": 0}}'
    }


@pytest.mark.parametrize(
    ("text", "said"), [("cpus: 4", "unknown keys cpus"), ("memory: lots", "lots"), ("numa: [{}]", "cpus"), ("[1]", "")]
)
def test_a_wrong_inventory_is_refused_with_the_file(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "node.yaml").write_text(text)
    with pytest.raises(InventoryError, match=r"node\.yaml") as error:
        read(tmp_path / "node.yaml")
    assert said in str(error.value)


def test_lists_of_cpus_are_read_and_written() -> None:
    assert parse_cpus("0-2,8,10-11\n") == (0, 1, 2, 8, 10, 11)
    assert format_cpus([11, 0, 1, 2, 8, 10]) == "0-2,8,10-11"
    assert (parse_cpus(""), format_cpus([])) == ((), "")


def test_of_what_was_rotated_away_only_the_end_is_told(tmp_path: Path) -> None:
    file = tmp_path / "main.log"
    file.write_bytes(b"now")
    assert LogReader(file).first() == Piece(b"now", 3)
    (tmp_path / "main.log.1").write_bytes(b"2222")
    (tmp_path / "main.log.2").write_bytes(b"1" * MOST_BYTES)
    assert LogReader(file).first() == Piece(b"1" * (MOST_BYTES - 4) + b"2222", 0)


def test_a_long_log_is_told_as_a_whole(tmp_path: Path) -> None:
    """Piece by piece from its beginning; before, a first piece of 1 MiB was all that was told."""

    class Written:
        def has_ended(self, uid: str, container: str) -> bool:
            return True

        def log_file(self, uid: str, container: str) -> Path:
            return tmp_path / "main.log"

    content = b"".join(b"%d\n" % number for number in range(300_000))
    (tmp_path / "main.log").write_bytes(content)
    (tmp_path / "main.log.1").write_bytes(b"older\n")
    told, offset = b"", -1
    while (reply := log_piece(Written(), LogRequest(pod_uid="u", tail=-1, offset=offset))).data:
        told, offset = told + reply.data, reply.next_offset
    assert told == b"older\n" + content and reply.ended


def test_what_an_attempt_wrote_is_kept_until_the_next_but_one(tmp_path: Path) -> None:
    class Written:
        def has_ended(self, uid: str, container: str) -> bool:
            return False

        def log_file(self, uid: str, container: str) -> Path:
            return tmp_path / "main.log"

    def told(**request: Any) -> tuple[bytes, str]:
        reply = log_piece(Written(), LogRequest(pod_uid="u", container="main", tail=-1, offset=-1, **request))
        return reply.data, reply.error

    file = tmp_path / "main.log"
    set_aside(file)
    assert told(previous=True) == (b"", "container 'main' of pod u has not run before")
    for attempt in range(3):
        set_aside(file)
        file.write_bytes(b"%d\n" % attempt)
        if attempt == 0:
            (tmp_path / "main.log.1").write_bytes(b"older\n")
    assert (told(), told(previous=True)) == ((b"2\n", ""), (b"1\n", ""))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["main.log", "main.log.previous"]


def test_what_was_rotated_of_an_attempt_goes_with_it(tmp_path: Path) -> None:
    file = tmp_path / "main.log"
    file.write_bytes(b"new\n")
    (tmp_path / "main.log.1").write_bytes(b"old\n")
    set_aside(file)
    assert LogReader(previous_of(file), 9).first().data == b"old\nnew\n" and not file.exists()
