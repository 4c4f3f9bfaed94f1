"""How the online service and the batch work are started: bare, under Kubernetes' own shares, or as pods of Tidegate."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from tests.bench.colocation.load import Load
from tests.bench.running_system import System

from node_agent.domain.limits import Limits
from node_agent.runtime.cgroups import Cgroups, find_cgroups

HERE = Path(__file__).parent
SERVER, HOG = str(HERE / "online_server.py"), str(HERE / "batch_hog.py")
PORTS = (29_101, 29_102)
ONLINE_MILLI = 1_500
"""What the online service asks for."""


@dataclass(frozen=True, slots=True)
class Crew:
    """What runs: the online service, and beside it ``hogs`` of a kind, or nothing."""

    kind: str = ""
    hogs: int = 2

    @property
    def programs(self) -> dict[str, list[str]]:
        """The command of each."""
        online = {"online": [sys.executable, SERVER, *map(str, PORTS)]}
        return online | ({"batch": [sys.executable, HOG, self.kind, str(self.hogs)]} if self.kind else {})


def batch_seconds() -> float:
    """CPU time that batch processes have used so far."""
    used = 0.0
    for process in psutil.process_iter():
        try:
            if HOG in process.cmdline():
                used += sum(process.cpu_times()[:2])
        except psutil.Error:
            continue
    return used


@contextmanager
def bare(crew: Crew, load: Load) -> Iterator[None]:
    """Plain processes, all alike."""
    with _processes({name: (command, []) for name, command in crew.programs.items()}, load):
        yield


@contextmanager
def shares(crew: Crew, load: Load) -> Iterator[None]:
    """As a kubelet puts them: the service's weight by its request, best effort with the least that there is."""
    groups = find_cgroups("tidegate-experiment")
    weights = {"online": Limits(cpu_request_milli=ONLINE_MILLI), "batch": Limits()}
    for name in crew.programs:
        groups.make(name, weights[name])
    try:
        with _processes({name: (one, groups.process_files(name)) for name, one in crew.programs.items()}, load):
            yield
    finally:
        _remove(groups, list(crew.programs))


@asynccontextmanager
async def pods(crew: Crew, load: Load, system: System) -> AsyncIterator[None]:
    """Pods of Tidegate: the service of QoS LS, the batch work of QoS BE."""
    manifests = [pod(name, command) for name, command in crew.programs.items()]
    await system.apply(system.request(manifests))
    try:
        await asyncio.to_thread(load.wait_for_the_service)
        await asyncio.to_thread(_wait_for, crew)
        yield
    finally:
        for name in crew.programs:
            await system.delete("Pod", name)
        await asyncio.to_thread(_wait_for, None)


def pod(name: str, command: list[str]) -> dict[str, Any]:
    """The manifest of one of them. The batch work asks for nothing: what may be lent follows minutes behind what else runs here."""
    resources = {} if name == "batch" else {"requests": {"cpu": f"{ONLINE_MILLI}m", "memory": "512Mi"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"koordinator.sh/qosClass": "BE" if name == "batch" else "LS"}},
        "spec": {
            "priority": 5_500 if name == "batch" else 9_500,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "busybox", "command": command, "resources": resources}],
        },
    }


def node_slo(node: str) -> dict[str, Any]:
    """The rules of the experiment: the kernel's least weight first, the quota at 95 percent of the machine second (adr 0034)."""
    threshold = {"enable": True, "cpuSuppressThresholdPercent": 95, "cpuSuppressPolicy": "weight"}
    return {
        "apiVersion": "slo.koordinator.sh/v1alpha1",
        "kind": "NodeSLO",
        "metadata": {"name": node},
        "spec": {
            "resourceUsedThresholdWithBE": threshold,
        },
    }


def colocation() -> dict[str, Any]:
    """What switches lending on: all of the machine but a twentieth may be lent."""
    config = {"enable": True, "cpuReclaimThresholdPercent": 95, "memoryReclaimThresholdPercent": 95}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "slo-controller-config", "namespace": "koordinator-system"},
        "data": {"colocation-config": json.dumps(config)},
    }


@contextmanager
def _processes(programs: dict[str, tuple[list[str], list[str]]], load: Load) -> Iterator[None]:
    """Run commands in the groups whose files are named beside them."""
    started = [subprocess.Popen(_in(files, command), start_new_session=True) for command, files in programs.values()]
    try:
        load.wait_for_the_service()
        yield
    finally:
        for process in started:
            for one in [*psutil.Process(process.pid).children(recursive=True), process]:
                one.kill()
            process.wait()


def _in(files: list[str], command: list[str]) -> list[str]:
    """The command, behind joining the control groups whose files these are."""
    return ["sh", "-c", "".join(f"echo 0 > {file} && " for file in files) + 'exec "$@"', "sh", *command]


def _remove(groups: Cgroups, names: list[str]) -> None:
    ends = time.monotonic() + 10
    while (names := [name for name in names if not groups.remove(name)]) and time.monotonic() < ends:
        time.sleep(0.05)
    groups.release()


def _wait_for(crew: Crew | None) -> None:
    """Until the batch work runs, or nothing of either runs any more. Raises TimeoutError."""
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        there = [any(word in (SERVER, HOG) for word in one.info["cmdline"] or ()) for one in _all()]
        hogs = sum(HOG in (one.info["cmdline"] or ()) for one in _all())
        if (crew is None and not any(there)) or (crew is not None and (not crew.kind or hogs >= crew.hogs)):
            return
        time.sleep(0.1)
    raise TimeoutError("the pods of the experiment did not start, or did not end, within a minute")


def _all() -> Iterator[psutil.Process]:
    return psutil.process_iter(["cmdline"])
