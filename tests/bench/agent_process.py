"""What a node agent costs as a process of its own: beside a hundred pods in control groups as a kubelet makes them, on a real bus."""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import orjson
import psutil
from tests.bench.agent_rules import PODS, RULES, pod_manifest
from tests.bench.figures import Figure, at_most

from bus.jetstream import JetStreamBus
from bus.server import ServerSettings, command, free_port, wait_until_open
from kube import Manifest
from tidegate import subjects
from tidegate.node.v1 import node_pb2

MOUNT = Path("/sys/fs/cgroup")
CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory")
WARM_SECONDS, WATCH_SECONDS = 15.0, 65.0
"""A report is among what is watched: one comes every minute."""
NODE = "bench"


async def agent_process() -> list[Figure]:
    """CPU of a minute, and memory, of the agent and of its guard; nothing where such groups cannot be made."""
    if not all(os.access(MOUNT / controller, os.W_OK) for controller in CONTROLLERS):
        print("agent-process: skipped, there are no control groups of version 1 here that may be written to")
        return []
    root = f"tidegate-bench-{os.getpid()}"
    with tempfile.TemporaryDirectory() as folder, kubelet_groups(root) as pods:
        async with _bus(Path(folder)) as (bus, settings), _gateway(bus) as heard:
            words = [
                *("--node", NODE, "--kubelet", "true", "--cgroup-root", f"/{root}"),
                *("--data-dir", folder, "--nats-url", settings.url, "--nats-token", settings.token),
            ]
            program = [sys.executable, "-m", "node_agent.main", *words]
            quiet = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
            with _started(program, quiet) as agent:
                await bus.set_value(subjects.assignment(NODE), _assignment(pods))
                return await _watch(psutil.Process(agent.pid), heard)


async def _watch(agent: psutil.Process, heard: list[bytes]) -> list[Figure]:
    await asyncio.sleep(WARM_SECONDS)
    begun, before = time.monotonic(), _cpu(agent)
    await asyncio.sleep(WATCH_SECONDS)
    part = (_cpu(agent) - before) / (time.monotonic() - begun) * 100
    assert heard, "nothing was measured"
    guards = agent.children()
    memory = agent.memory_full_info().uss + sum(one.memory_full_info().uss for one in guards)
    return [
        at_most(f"agent of a node with {PODS} pods, of a core", part, "%", 1.0, "a process; sampled every second"),
        at_most("the same, memory of its own with its guard", memory / 2**20, "MiB", 120),
        at_most(
            "the same, resident", agent.memory_info().rss / 2**20, "MiB", 120, "the Python that is shared included"
        ),
    ]


def _cpu(agent: psutil.Process) -> float:
    return float(sum(sum(one.cpu_times()[:2]) for one in (agent, *agent.children())))


@asynccontextmanager
async def _bus(folder: Path) -> AsyncIterator[tuple[JetStreamBus, ServerSettings]]:
    settings = ServerSettings(folder / "nats", free_port(), "bench")
    with _started(command(settings)):
        await wait_until_open(settings.host, settings.port)
        bus = await JetStreamBus.connect(settings.url, "bench", token=settings.token)
        try:
            yield bus, settings
        finally:
            await bus.close()


@contextmanager
def _started(words: list[str], environment: dict[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    nothing = subprocess.DEVNULL
    with subprocess.Popen(words, env=environment, stdout=nothing, stderr=nothing) as process:
        try:
            yield process
        finally:
            process.terminate()


@asynccontextmanager
async def _gateway(bus: JetStreamBus) -> AsyncIterator[list[bytes]]:
    """Hears the reports of the node that tell of use."""
    heard: list[bytes] = []

    async def answer(payload: bytes) -> bytes:
        usage = node_pb2.Report.FromString(payload).usage
        heard.extend([usage] if usage else [])
        return node_pb2.ReportReply().SerializeToString()

    serving = await bus.serve(subjects.report(NODE), answer)
    try:
        yield heard
    finally:
        await serving.stop()


@contextmanager
def kubelet_groups(root: str) -> Iterator[list[Manifest]]:
    """The groups of the pods below ``root``, each with a process that does nothing; their manifests."""
    pods, folders, processes = [], [], []
    try:
        for number in range(PODS):
            uid, container = f"{number:08x}-0fda-4b1a-9f6e-{number:012x}", f"{number:064x}"
            tier = "besteffort" if number % 2 else "burstable"
            path = f"{root}/kubepods/{tier}/pod{uid}/{container}"
            process = subprocess.Popen(["sleep", "100000"])
            processes.append(process)
            for controller in CONTROLLERS:
                folders += _make(controller, path)
                (MOUNT / controller / path / "cgroup.procs").write_text(str(process.pid))
            status = {"containerStatuses": [{"name": "main", "containerID": f"containerd://{container}"}]}
            if not number % 2:  # a kubelet knows the limits of these
                for folder in (f"{root}/kubepods/{tier}/pod{uid}", path):
                    (MOUNT / "cpu" / folder / "cpu.cfs_quota_us").write_text("20000")
            pods.append({**pod_manifest(uid, bool(number % 2)), "status": status})
        yield pods
    finally:
        for process in processes:
            process.kill()
            process.wait()
        for folder in reversed(folders):
            folder.rmdir()


def _make(controller: str, path: str) -> list[Path]:
    parts, made = path.split("/"), []
    for depth in range(1, len(parts) + 1):
        folder = MOUNT / controller / "/".join(parts[:depth])
        if not folder.is_dir():
            folder.mkdir()
            made.append(folder)
            for name in ("cpuset.cpus", "cpuset.mems") if controller == "cpuset" else ():
                (folder / name).write_text((folder.parent / name).read_text())
    return made


def _assignment(pods: list[Manifest]) -> bytes:
    amounts = {"cpu": str(len(os.sched_getaffinity(0))), "memory": "64Gi"}
    node = {"status": {"capacity": amounts, "allocatable": amounts}}
    message = node_pb2.Assignment(node=NODE, revision=1, node_slo=orjson.dumps(RULES), node_object=orjson.dumps(node))
    message.pods.extend(orjson.dumps(one) for one in pods)
    return message.SerializeToString()
