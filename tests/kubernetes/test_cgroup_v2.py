"""The node agent on a kernel with cgroup version 2 and nothing else, by either driver: it finds pods, and reads what they used.

On a virtual machine, since this one may have been started with version 1. The groups are those that a kubelet makes, processes in
them compute and hold memory.
"""

import json
import os
import shutil
from pathlib import Path

import pytest
import yaml
from lab_programs import NoLab
from virtual_machine import run

pytestmark = pytest.mark.timeout(400)
TOP = Path(__file__).parents[2]
BURSTABLE, GUARANTEED, BEST_EFFORT = (f"{digit * 8}-0fda-4b1a-9f6e-{digit * 12}" for digit in "123")
MAIN, OTHER = "a" * 64, "b" * 64
PODS = {
    # What CgroupName.ToSystemd and the runtime make of them.
    BURSTABLE: "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{0}.slice/cri-containerd-{1}.scope",
    GUARANTEED: "kubepods.slice/kubepods-pod{0}.slice/cri-containerd-{1}.scope",
    BEST_EFFORT: "kubepods/besteffort/pod{0}/{1}",
}
HELD_BYTES = 32 << 20
PROGRAM = """
import json, time
from pathlib import Path
from node_agent.kubelet.pod_groups import consumptions, find_groups

mount("cgroup2", "/sys/fs/cgroup")
top = Path("/sys/fs/cgroup")

def made(path):
    folder = top
    for part in path.split("/"):
        (folder / "cgroup.subtree_control").write_text("+cpu +memory")
        folder = folder / part
        folder.mkdir(exist_ok=True)
    return folder

def work(folder):
    (folder / "cgroup.procs").write_text("0")
    held = bytearray(HELD)
    held[:] = b"x" * HELD
    until = time.process_time() + 1
    while time.process_time() < until:
        pass
    os.write(told[1], b".")
    time.sleep(3600)

told = os.pipe()
children = []
for path in PATHS:
    folder = made(path)
    child = os.fork()
    if not child:
        work(folder)
    children.append(child)
for _ in children:
    os.read(told[0], 1)
groups = find_groups(top)
found = groups.find()
used = consumptions(groups, found)
ticks = os.sysconf("SC_CLK_TCK")
own = [sum(map(int, Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[11:13])) / ticks for child in children]
report = {
    "version": groups.version,
    "pods": {uid: [str(pod.path), sorted(pod.containers)] for uid, pod in found.items()},
    "used": {uid: [one.cpu_ns / 1e9, one.memory_bytes] for uid, one in used.items()},
    "own": own,
}
print("REPORT " + json.dumps(report))
"""


def code(folder: Path) -> list[Path]:
    """The agent and what it imports, without compiled parts: the virtual machine has a Python of its own."""
    pure = folder / "pure"
    shutil.copytree(Path(yaml.__file__).parent, pure / "yaml", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    (pure / "pynvml.py").write_text("")  # that machine has no cards
    return [
        TOP / "services" / "node_agent" / "src",
        *(TOP / "libs" / name / "src" for name in ("kube", "resources")),
        pure,
    ]


def test_pods_are_found_and_measured_on_a_kernel_with_version_2_alone(tmp_path: Path) -> None:
    if os.environ.get("TIDEGATE_LAB") not in ("all", "build"):
        pytest.skip("a virtual machine with cgroup version 2 takes a minute; TIDEGATE_LAB=all starts it")
    paths = {
        uid: path.format(uid.replace("-", "_") if ".slice" in path else uid, MAIN if uid == BURSTABLE else OTHER)
        for uid, path in PODS.items()
    }
    program = PROGRAM.replace("PATHS", repr(list(paths.values()))).replace("HELD", str(HELD_BYTES))
    try:
        said = run(program, code(tmp_path), tmp_path)
    except NoLab as error:
        pytest.skip(str(error))

    (line,) = [line.partition("REPORT ")[2] for line in said.splitlines() if "REPORT " in line] or [said[-2000:]]
    report = json.loads(line)
    assert report["version"] == 2
    assert report["pods"] == {
        uid: [path.rpartition("/")[0], [MAIN if uid == BURSTABLE else OTHER]] for uid, path in paths.items()
    }
    for (uid, (cpu_seconds, memory_bytes)), own in zip(
        [(uid, report["used"][uid]) for uid in paths], report["own"], strict=True
    ):
        assert cpu_seconds == pytest.approx(own, rel=0.2), uid
        assert HELD_BYTES <= memory_bytes < 2 * HELD_BYTES, uid


RULES = """
import asyncio, json, signal, time
from pathlib import Path
from node_agent.close_look import CloseLook
from node_agent.colocating import Colocation
from node_agent.inventory.hardware import find_hardware
from node_agent.kubelet.pod_groups import find_groups
from node_agent.layouts import KubeletLayout
from node_agent.ports import Assignment
from node_agent.domain.colocation.memory_protection import Watermark
from node_agent.runtime.memory_reclaim import MemoryReclaim
from node_agent.runtime.knob_writer import KnobWriter
from node_agent.runtime.use_files import UseFiles

mount("cgroup2", "/sys/fs/cgroup")
top = Path("/sys/fs/cgroup")

def made(path):
    folder = top
    for part in path.split("/"):
        (folder / "cgroup.subtree_control").write_text("+cpu +memory +cpuset +io")
        folder = folder / part
        folder.mkdir(exist_ok=True)
    return folder

def run(path, begin):
    ready = os.pipe()
    child = os.fork()
    if child:
        os.read(ready[0], 1)
        return child
    (made(path) / "cgroup.procs").write_text("0")
    signal.signal(signal.SIGUSR1, lambda *_: None)
    os.write(ready[1], b".")
    if not begin:
        signal.pause()
    while True:
        pass

web, crunch = (uid for uid in UIDS)
serves, works = f"kubepods/burstable/pod{web}/{'a' * 64}", f"kubepods/besteffort/pod{crunch}/{'b' * 64}"
serving = run(serves, False)
run(works, True)
# What a kubelet and its runtime set.
for folder in (serves, serves.rpartition("/")[0]):
    (top / folder / "cpu.max").write_text("200000 100000")

def pod(uid, qos, container, priority, requests, limits):
    labels = {"koordinator.sh/qosClass": qos}
    spec = {"priority": priority, "containers": [{"name": "main", "resources": {"requests": requests, "limits": limits}}]}
    status = {"containerStatuses": [{"name": "main", "containerID": "containerd://" + container}]}
    return {"metadata": {"uid": uid, "name": qos.lower(), "namespace": "d", "labels": labels}, "spec": spec, "status": status}

lent = {"kubernetes.io/batch-cpu": "500", "kubernetes.io/batch-memory": "64Mi"}
pods = (
    pod(web, "LS", "a" * 64, 9500, {"cpu": "1", "memory": "64Mi"}, {"cpu": "2", "memory": "128Mi"}),
    pod(crunch, "BE", "b" * 64, 5500, lent, lent),
)
slo = {
    "resourceUsedThresholdWithBE": {"enable": True, "cpuSuppressPolicy": "cfsQuota", "cpuSuppressThresholdPercent": 95},
    "cpuBurstStrategy": {"policy": "cpuBurstOnly", "cpuBurstPercent": 1000},
    "resourceQOSStrategy": {
        "lsClass": {"memoryQOS": {"enable": True, "lowLimitPercent": 100, "throttlingPercent": 50}},
        "beClass": {"cpuQOS": {"enable": True}},
    },
}
node = {"status": {"capacity": {"cpu": "1", "memory": "1Gi"}, "allocatable": {"cpu": "1", "memory": "1Gi"}}}
groups = find_groups(top)
layout = KubeletLayout(groups)
layout.assign(pods)
look, writer = CloseLook(layout, UseFiles(groups.use_paths())), KnobWriter(groups.knobs())
keeper = Colocation(
    find_hardware([0]), layout, look, writer, Path("/"), lambda: time.time_ns() // 1_000_000, lambda wishes: None
)
FILES = {
    "tier": ("kubepods/besteffort", ("cpu.max", "cpu.idle", "cpuset.cpus")),
    "works": (works, ("cpu.max", "cpu.weight", "memory.max")),
    "serves": (serves, ("cpu.max", "cpu.max.burst", "memory.low", "memory.high")),
    "pod": (serves.rpartition("/")[0], ("cpu.max.burst", "memory.low")),
    "burstable": ("kubepods/burstable", ("memory.low",)),
}

def files():
    return {name: {file: (top / folder / file).read_text().strip() for file in wanted} for name, (folder, wanted) in FILES.items()}

def assigned(revision, rules):
    keeper.assign(Assignment("n", revision, pods, slo=rules, node_object=node))

async def main():
    task = asyncio.create_task(keeper.run())
    assigned(1, slo)
    await asyncio.sleep(6)
    calm = files()
    os.kill(serving, signal.SIGUSR1)
    found = []
    until = time.monotonic() + 20
    while time.monotonic() < until and len(found) < 3:
        await asyncio.sleep(0.2)
        newest = keeper.newest
        if newest.allowance.online > 300 and (not found or found[-1][0] != newest.allowance.online):
            found.append([newest.allowance.online, files()["tier"]["cpu.max"], [one.kind for one in newest.disturbances]])
    stalls = {uid: list(stall) for uid, stall in look.sample.stalls.items()}
    assigned(2, {})
    await asyncio.sleep(3)
    task.cancel()
    reclaim = MemoryReclaim(groups.knobs())
    reclaim.round({serves: Watermark(0, 4096)})
    refused = {"/".join(key): why for key, why in writer.refused.items()}
    said = {"calm": calm, "step": found, "stalls": stalls, "off": files(), "refused": refused, "lacking": reclaim._lacking}
    print("REPORT " + json.dumps(said))

asyncio.run(main())
"""


def test_rules_are_put_in_force_on_a_kernel_with_version_2_alone(tmp_path: Path) -> None:
    """A machine of one CPU. A burst of ten times the limit is what the kernel would refuse; best effort runs only where nobody
    else wants to; and when the rules are off all is as it was."""
    if os.environ.get("TIDEGATE_LAB") not in ("all", "build"):
        pytest.skip("a virtual machine with cgroup version 2 takes a minute; TIDEGATE_LAB=all starts it")
    program = RULES.replace("UIDS", repr((BURSTABLE, BEST_EFFORT)))
    try:
        said = run(program, code(tmp_path), tmp_path)
    except NoLab as error:
        pytest.skip(str(error))

    (line,) = [line.partition("REPORT ")[2] for line in said.splitlines() if "REPORT " in line] or [said[-3000:]]
    report = json.loads(line)
    calm, off = report["calm"], report["off"]
    assert calm["works"] == {"cpu.max": "max 100000", "cpu.weight": "20", "memory.max": str(64 << 20)}
    assert calm["serves"]["cpu.max.burst"] == calm["pod"]["cpu.max.burst"] == "200000"
    assert (calm["serves"]["memory.low"], calm["serves"]["memory.high"]) == (str(64 << 20), str(96 << 20))
    assert calm["burstable"]["memory.low"] == str(64 << 20)
    assert calm["tier"]["cpu.idle"] == "1"
    before = int(calm["tier"]["cpu.max"].split()[0])
    assert min(int(quota.split()[0]) for _, quota, _ in report["step"]) < before / 2
    assert BURSTABLE in report["stalls"], "the kernel counts what a group waits for"
    assert off["tier"] == {"cpu.max": "max 100000", "cpu.idle": "0", "cpuset.cpus": calm["tier"]["cpuset.cpus"]}
    assert off["works"]["cpu.max"] == "50000 100000"
    assert (off["serves"]["cpu.max.burst"], off["serves"]["memory.high"], off["burstable"]["memory.low"]) == (
        "0",
        "max",
        "0",
    )
    assert report["refused"] == {} and report["lacking"] == "", "memory is taken back by this kernel too"
