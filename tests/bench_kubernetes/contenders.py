"""The schedulers that are held against one another: how each is held back, let go and stopped, and what its gangs look like."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import psutil
from tests.bench_kubernetes.cluster import GATES, PODS, ControlPlane, Manifest, pod, programs

from tidegate.client import Client, find_endpoint
from tidegate_cli.supervisor import endpoint

READY_SECONDS = 60.0
QPS = 5_000
QUIET_SECONDS = 0.05
"""Of CPU in half a second: who uses no more is done."""


class Contender(Protocol):
    """A scheduler. Its pods carry its ``name``; ``groups`` is the collection of its gangs' groups."""

    title: str
    name: str
    groups: str

    async def release(self) -> None:
        """Let it place what waits."""

    def processes(self) -> dict[str, psutil.Process]:
        """Its processes by name."""

    def gangs(self, prefix: str, count: int, size: int) -> Sequence[tuple[str, Manifest]]:
        """The objects of ``count`` gangs, each with the path of its collection."""


class KubeScheduler:
    """kube-scheduler is let go by being started, and held back by not running."""

    title = "kube-scheduler"
    name = "default-scheduler"
    groups = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"

    def __init__(self, plane: ControlPlane, *, gangs: bool) -> None:
        self._plane, self._gangs = plane, gangs

    async def release(self) -> None:
        configuration = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(self._plane.kubeconfig), "qps": QPS, "burst": QPS},
        }
        file = self._plane.folder / "kube-scheduler.json"
        file.write_text(json.dumps(configuration))
        command = [str(programs("kube-scheduler")["kube-scheduler"]), f"--config={file}", "--secure-port=0"]
        self._plane.start("kube-scheduler", command + ([f"--feature-gates={GATES}"] if self._gangs else []))

    def processes(self) -> dict[str, psutil.Process]:
        return {"kube-scheduler": psutil.Process(self._plane.processes["kube-scheduler"].pid)}

    def gangs(self, prefix: str, count: int, size: int) -> Sequence[tuple[str, Manifest]]:
        made: list[tuple[str, Manifest]] = []
        for number in range(count):
            name = f"{prefix}-{number}"
            group = {
                "apiVersion": "scheduling.k8s.io/v1alpha2",
                "kind": "PodGroup",
                "metadata": {"name": name},
                "spec": {"schedulingPolicy": {"gang": {"minCount": size}}},
            }
            belonging = {"podGroupName": name}
            made.append((self.groups, group))
            made += [(PODS, pod(f"{name}-{i}", self.name, schedulingGroup=belonging)) for i in range(size)]
        return made

    def stop(self) -> None:
        """It is held back again."""
        self._plane.kill("kube-scheduler")


class Tidegate:
    """All services run all the time; an operator's switch holds them back and lets them go."""

    title = "Tidegate"
    name = "tidegate"
    groups = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"

    def __init__(self, folder: Path, client: Client) -> None:
        self._folder, self._client = folder, client

    async def hold(self) -> None:
        """Let it place nothing."""
        await self._client.set_scheduling(paused=True, reason="a benchmark prepares its pods")

    async def release(self) -> None:
        await self._client.set_scheduling(paused=False)

    async def knows(self, pods: int) -> None:
        """Return when its facts hold so many pods and it has nothing more to do with them."""
        while (await self._client.status()).objects.get("Pod", 0) != pods:
            await asyncio.sleep(0.2)
        before = self._cpu_seconds()
        while True:
            await asyncio.sleep(0.5)
            now = self._cpu_seconds()
            if now - before < QUIET_SECONDS:
                return
            before = now

    def _cpu_seconds(self) -> float:
        return sum(sum(process.cpu_times()[:2]) for process in self.processes().values())

    def processes(self) -> dict[str, psutil.Process]:
        found = endpoint.read(self._folder)
        assert found is not None, "Tidegate does not run"
        children = {name: psutil.Process(pid) for name, pid in found.children.items()}
        return children | {"supervisor": psutil.Process(found.pid)}

    def gangs(self, prefix: str, count: int, size: int) -> Sequence[tuple[str, Manifest]]:
        made: list[tuple[str, Manifest]] = []
        for number in range(count):
            name = f"{prefix}-{number}"
            group = {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "PodGroup",
                "metadata": {"name": name},
                "spec": {"minMember": size, "queue": "default"},
            }
            belonging = {"scheduling.k8s.io/group-name": name}
            made.append((self.groups, group))
            made += [(PODS, pod(f"{name}-{i}", self.name, annotations=belonging)) for i in range(size)]
        return made


@asynccontextmanager
async def tidegate(plane: ControlPlane, folder: Path) -> AsyncIterator[tuple[Tidegate, float]]:
    """Tidegate with all its services as processes, ready; and after how many seconds it was."""
    command = [sys.executable, "-m", "tidegate_cli.main", "up", "--data-dir", str(folder)]
    command += ["--kubeconfig", str(plane.kubeconfig), "--scheduler-names", Tidegate.name]
    began, log = time.perf_counter(), folder / "up.log"
    process = _started(command, log)
    try:
        while "ready at" not in log.read_text():
            if process.poll() is not None or time.perf_counter() > began + READY_SECONDS:
                raise RuntimeError(f"Tidegate does not start: {log.read_text()}")
            await asyncio.sleep(0.05)
        took = time.perf_counter() - began
        async with Client(find_endpoint(data_dir=folder)) as client:
            yield Tidegate(folder, client), took
    finally:
        process.terminate()
        process.wait(30)


def _started(command: Sequence[str], log: Path) -> "subprocess.Popen[bytes]":
    log.parent.mkdir(parents=True)
    with log.open("wb") as output:
        return subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
