"""The rules of a node in control groups as a kubelet makes them, on this machine's kernel: no kubelet is needed to see it."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from kube import Manifest
from node_agent.inventory.machine import Devices
from node_agent.kubelet.agent import KubeletAgent
from node_agent.kubelet.kept_look import KeptLook
from node_agent.kubelet.pod_groups import find_groups
from node_agent.ports import Assignment, Report
from node_agent.settings import AgentSettings

MOUNT = Path("/sys/fs/cgroup")
ROOT = f"tidegate-test-kube-{os.getpid()}"
CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory")
CPUS = sorted(os.sched_getaffinity(0))
WEB, CRUNCH = (f"{digit * 8}-0fda-4b1a-9f6e-{digit * 12}" for digit in "12")
SERVING, WORKING = "a" * 64, "b" * 64
SPIN = "import signal\nsignal.signal(signal.SIGUSR1, lambda *_: None)\nsignal.pause()\nwhile True: pass"


class Kubelet:
    """The groups that a kubelet would have made, with processes in them."""

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []
        self.made: list[Path] = []

    def make(self, path: str) -> None:
        parts = [ROOT, *path.split("/")]
        for controller in CONTROLLERS:
            for depth in range(1, len(parts) + 1):
                folder = MOUNT / controller / "/".join(parts[:depth])
                if not folder.is_dir():
                    folder.mkdir()
                    self.made.append(folder)
                if controller == "cpuset":
                    for name in ("cpuset.cpus", "cpuset.mems"):
                        (folder / name).write_text((folder.parent / name).read_text())

    def run(self, path: str, program: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-c", program])
        self.processes.append(process)
        for controller in CONTROLLERS:
            (MOUNT / controller / ROOT / path / "cgroup.procs").write_text(str(process.pid))
        return process

    def read(self, controller: str, path: str, name: str) -> str:
        return (MOUNT / controller / ROOT / path / name).read_text().strip()

    def write(self, controller: str, path: str, name: str, text: str) -> None:
        (MOUNT / controller / ROOT / path / name).write_text(text)

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        for folder in reversed(self.made):
            with contextlib.suppress(OSError):
                folder.rmdir()


class Gateway:
    def __init__(self) -> None:
        self.reports: list[Report] = []

    async def report(self, report: Report) -> None:
        self.reports.append(report)

    async def secret(self, namespace: str, name: str) -> dict[str, bytes]:
        raise AssertionError("an agent beside a kubelet needs no Secret")


@pytest.fixture
def kubelet() -> Iterator[Kubelet]:
    if not all(os.access(MOUNT / controller, os.W_OK) for controller in CONTROLLERS):
        pytest.skip("no control groups of version 1 here that a test may write to (those of version 2 are met in a VM)")
    made = Kubelet()
    try:
        yield made
    finally:
        made.end()


@contextlib.asynccontextmanager
async def agent_on(folder: Path, **settings: Any) -> AsyncIterator[KubeletAgent]:
    kept = KeptLook(folder / "usage.json")
    own = AgentSettings("n1", folder, **settings)
    agent = KubeletAgent(
        own, find_groups(MOUNT, f"/{ROOT}"), Devices(), kept, Gateway(), lambda: time.time_ns() // 1_000_000
    )
    task = asyncio.create_task(agent.run())
    try:
        yield agent
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def pod(uid: str, qos: str, container: str, priority: int, **amounts: dict[str, str]) -> Manifest:
    return {
        "metadata": {
            "uid": uid,
            "namespace": "default",
            "name": qos.lower(),
            "labels": {"koordinator.sh/qosClass": qos},
        },
        "spec": {"priority": priority, "containers": [{"name": "main", "resources": amounts}]},
        "status": {"containerStatuses": [{"name": "main", "containerID": f"containerd://{container}"}]},
    }


PODS = (
    pod(WEB, "LS", SERVING, 9500, requests={"cpu": "1"}, limits={"cpu": "2"}),
    pod(
        CRUNCH, "BE", WORKING, 5500,
        requests={"kubernetes.io/batch-cpu": "500", "kubernetes.io/batch-memory": "64Mi"},
        limits={"kubernetes.io/batch-cpu": "500", "kubernetes.io/batch-memory": "64Mi"},
    ),
)  # fmt: skip
SERVES, WORKS = f"kubepods/burstable/pod{WEB}", f"kubepods/besteffort/pod{CRUNCH}"


def assigned(revision: int, slo: Manifest) -> Assignment:
    amounts = {"cpu": str(len(CPUS)), "memory": "8Gi"}
    return Assignment(
        "n1", revision, PODS, slo=slo, node_object={"status": {"capacity": amounts, "allocatable": amounts}}
    )


async def until(holds: Any, seconds: float = 5) -> float:
    begun = time.monotonic()
    while not holds():
        assert time.monotonic() - begun < seconds, f"not within {seconds} s"
        await asyncio.sleep(0.01)
    return time.monotonic() - begun


async def test_a_kubelets_pods_are_held_to_the_rules(kubelet: Kubelet, tmp_path: Path) -> None:
    for path in (f"{SERVES}/{SERVING}", f"{WORKS}/{WORKING}"):
        kubelet.make(path)
    async with agent_on(tmp_path) as agent:
        agent.assign(assigned(1, {"cpuBurstStrategy": {"policy": "cpuBurstOnly", "cpuBurstPercent": 50}}))
        await until(lambda: kubelet.read("cpu", WORKS, "cpu.cfs_quota_us") == "50000")
        for path in (WORKS, f"{WORKS}/{WORKING}"):
            assert kubelet.read("cpu", path, "cpu.shares") == "512"
            assert kubelet.read("memory", path, "memory.limit_in_bytes") == str(64 << 20)
        # A kubelet sets what pods ask for; here nobody did, so the kernel refuses a burst without a quota to save up.
        assert kubelet.read("cpu", SERVES, "cpu.cfs_quota_us") == "-1"


async def test_a_step_of_the_online_load_is_answered_within_a_second(
    kubelet: Kubelet, tmp_path: Path, waits: Any, ahead: None
) -> None:
    for path in (f"{SERVES}/{SERVING}", f"{WORKS}/{WORKING}"):
        kubelet.make(path)
    # The pods get the machine, whatever else runs on it; of them, best effort gets what is left.
    (MOUNT / "cpu" / ROOT / "cpu.shares").write_text("200000")
    (MOUNT / "cpu" / ROOT / "kubepods/besteffort/cpu.shares").write_text("2")
    web = kubelet.run(f"{SERVES}/{SERVING}", SPIN)
    kubelet.run(f"{WORKS}/{WORKING}", "while True: pass")
    rules = {"enable": True, "cpuSuppressPolicy": "cfsQuota", "cpuSuppressThresholdPercent": 200}
    async with agent_on(tmp_path) as agent:
        agent.assign(assigned(1, {"resourceUsedThresholdWithBE": rules}))
        await until(lambda: kubelet.read("cpu", "kubepods/besteffort", "cpu.cfs_quota_us") != "-1")
        await until(lambda: waits(web.pid), 20)
        await asyncio.sleep(2)
        assert agent.colocation.newest.allowance.online < 100
        web.send_signal(signal.SIGUSR1)

        def answered() -> bool:
            newest = agent.colocation.newest
            quota_us = int(kubelet.read("cpu", "kubepods/besteffort", "cpu.cfs_quota_us"))
            return newest.allowance.online >= 300 and quota_us == newest.kept.held.quota_milli * 100

        took = await until(answered)
        assert took <= 1.0, f"the load of one CPU was answered after {took:.2f} s"
        agent.assign(assigned(2, {}))
        await until(lambda: kubelet.read("cpu", "kubepods/besteffort", "cpu.cfs_quota_us") == "-1")


async def test_an_agent_that_only_measures_writes_nothing(kubelet: Kubelet, tmp_path: Path) -> None:
    kubelet.make(f"{WORKS}/{WORKING}")
    async with agent_on(tmp_path, enforce=False) as agent:
        agent.assign(assigned(1, {}))
        await asyncio.sleep(0.3)
        assert kubelet.read("cpu", WORKS, "cpu.cfs_quota_us") == "-1"


async def test_a_pod_that_goes_in_the_midst_and_a_container_that_is_another_are_no_trouble(
    kubelet: Kubelet, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The groups of a pod come and go while the agent believes it there; a container's next attempt has another id."""
    again = "c" * 64
    for path in (f"{SERVES}/{SERVING}", f"{WORKS}/{WORKING}"):
        kubelet.make(path)
    rules = {"resourceUsedThresholdWithBE": {"enable": True, "cpuSuppressPolicy": "cpuset"},
             "cpuBurstStrategy": {"policy": "auto"}}  # fmt: skip
    async with agent_on(tmp_path) as agent:
        agent.assign(assigned(1, rules))
        await until(lambda: kubelet.read("cpu", f"{WORKS}/{WORKING}", "cpu.cfs_quota_us") == "50000")
        for _ in range(20):
            for folder in [MOUNT / name / ROOT / WORKS for name in CONTROLLERS]:
                (folder / WORKING).rmdir()
                folder.rmdir()
            await asyncio.sleep(0.07)
            for path in (WORKS, f"{WORKS}/{WORKING}"):
                kubelet.make(path)
            await asyncio.sleep(0.07)
        await until(lambda: kubelet.read("cpu", f"{WORKS}/{WORKING}", "cpu.cfs_quota_us") == "50000", 12)
        for name in CONTROLLERS:
            (MOUNT / name / ROOT / WORKS / WORKING).rmdir()
        kubelet.make(f"{WORKS}/{again}")
        restarted = pod(CRUNCH, "BE", again, 5500, **PODS[1]["spec"]["containers"][0]["resources"])
        agent.assign(Assignment("n1", 2, (PODS[0], restarted), slo=rules, node_object=assigned(1, {}).node_object))
        await until(lambda: kubelet.read("cpu", f"{WORKS}/{again}", "cpu.cfs_quota_us") == "50000")
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.skipif(len(CPUS) < 2, reason="it takes two CPUs to give one of them away")
async def test_best_effort_of_a_kubelet_is_held_by_cpu_set_down_to_its_containers(
    kubelet: Kubelet, tmp_path: Path
) -> None:
    kubelet.make(f"{WORKS}/{WORKING}")
    hog = kubelet.run(f"{WORKS}/{WORKING}", "while True: pass")
    pinned = {**PODS[0], "metadata": {**PODS[0]["metadata"], "labels": {"koordinator.sh/qosClass": "LSE"}}}
    pinned["metadata"]["annotations"] = {"scheduling.koordinator.sh/resource-status": f'{{"cpuset": "{CPUS[0]}"}}'}
    async with agent_on(tmp_path) as agent:
        agent.assign(Assignment("n1", 1, (pinned, PODS[1]), node_object=assigned(1, {}).node_object))
        await until(lambda: CPUS[0] not in os.sched_getaffinity(hog.pid))
        assert kubelet.read("cpuset", f"{WORKS}/{WORKING}", "cpuset.cpus") == ",".join(map(str, CPUS[1:]))
        agent.assign(Assignment("n1", 2, (PODS[1],), node_object=assigned(1, {}).node_object))
        await until(lambda: os.sched_getaffinity(hog.pid) == set(CPUS))
