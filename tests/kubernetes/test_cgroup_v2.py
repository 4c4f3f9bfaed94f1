"""The node agent on a kernel with cgroup version 2 and nothing else, by either driver: it finds pods, and reads what they used.

On a virtual machine, since this one may have been started with version 1. The groups are those that a kubelet makes, processes in
them compute and hold memory.
"""

import json
import os
from pathlib import Path

import pytest
from lab_programs import NoLab
from virtual_machine import run

pytestmark = pytest.mark.timeout(400)
CODE = [Path(__file__).parents[2] / "services" / "node_agent" / "src"]
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


def test_pods_are_found_and_measured_on_a_kernel_with_version_2_alone(tmp_path: Path) -> None:
    if os.environ.get("TIDEGATE_LAB") not in ("all", "build"):
        pytest.skip("a virtual machine with cgroup version 2 takes a minute; TIDEGATE_LAB=all starts it")
    paths = {
        uid: path.format(uid.replace("-", "_") if ".slice" in path else uid, MAIN if uid == BURSTABLE else OTHER)
        for uid, path in PODS.items()
    }
    program = PROGRAM.replace("PATHS", repr(list(paths.values()))).replace("HELD", str(HELD_BYTES))
    try:
        said = run(program, CODE, tmp_path)
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
