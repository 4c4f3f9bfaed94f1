"""The agent as the process that is deployed, on a real bus: told to end, it leaves a kubelet's groups as they were."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.component.node_agent.test_node_agent_kubepods import (
    CONTROLLERS,
    CPUS,
    PODS,
    ROOT,
    SERVES,
    SERVING,
    WORKING,
    WORKS,
    Kubelet,
    kubelet,
    until,
)

from bus.jetstream import JetStreamBus
from bus.server import ServerSettings, command, free_port, wait_until_open
from node_agent.runtime.guard import is_guarded
from tidegate import subjects
from tidegate.node.v1 import node_pb2

__all__ = ["kubelet"]
RULES = {
    "resourceUsedThresholdWithBE": {"enable": True, "cpuSuppressPolicy": "cfsQuota", "cpuSuppressThresholdPercent": 10},
    "resourceQOSStrategy": {"beClass": {"cpuQOS": {"enable": True}}},
}
KNOBS = {"cpu": ("cpu.cfs_quota_us", "cpu.idle", "cpu.shares"), "cpuset": ("cpuset.cpus",)}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ServerSettings]:
    settings = ServerSettings(tmp_path / "nats", free_port(), "test")
    nothing = subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command(settings), stdout=nothing, stderr=nothing)
    await wait_until_open(settings.host, settings.port)
    yield settings
    process.terminate()
    await process.wait()


def state(kubelet: Kubelet) -> dict[str, str]:
    """Of the groups of best effort, and of the pod that serves."""
    groups = ("kubepods/besteffort", WORKS, f"{WORKS}/{WORKING}", SERVES, f"{SERVES}/{SERVING}")
    names = [(controller, name) for controller in CONTROLLERS for name in KNOBS.get(controller, ())]
    return {f"{group}/{name}": kubelet.read(controller, group, name) for group in groups for controller, name in names}


async def test_told_to_end_it_gives_everything_back(kubelet: Kubelet, server: ServerSettings, tmp_path: Path) -> None:
    for path in (f"{SERVES}/{SERVING}", f"{WORKS}/{WORKING}"):
        kubelet.make(path)
    amounts = {"cpu": str(len(CPUS)), "memory": "8Gi"}
    node: Any = {"status": {"capacity": amounts, "allocatable": amounts}}
    message = node_pb2.Assignment(node="n1", revision=1, node_slo=orjson.dumps(RULES), node_object=orjson.dumps(node))
    message.pods.extend(orjson.dumps(one) for one in PODS)
    # What the agent decides about lent pods holds whatever the rules: it is what a kubelet would have set.
    for path in (WORKS, f"{WORKS}/{WORKING}"):
        kubelet.write("cpu", path, "cpu.cfs_quota_us", "50000")
        kubelet.write("cpu", path, "cpu.shares", "512")
    kubelet.write("cpu", "kubepods/besteffort", "cpu.shares", "2")
    before = state(kubelet)
    bus = await JetStreamBus.connect(server.url, "test", token=server.token)
    words = ("--node", "n1", "--kubelet", "true", "--cgroup-root", f"/{ROOT}", "--data-dir", str(tmp_path))
    words += ("--nats-url", server.url, "--nats-token", server.token)
    agent = await asyncio.create_subprocess_exec(sys.executable, "-m", "node_agent.main", *words)
    try:
        await bus.set_value(subjects.assignment("n1"), message.SerializeToString())
        await until(lambda: kubelet.read("cpu", "kubepods/besteffort", "cpu.cfs_quota_us") != "-1", 30)
        await until(lambda: is_guarded(tmp_path / "node/rules.back.json"))
        assert kubelet.read("cpu", "kubepods/besteffort", "cpu.idle") == "1"
        agent.send_signal(signal.SIGTERM)
        async with asyncio.timeout(30):
            assert await agent.wait() == 0
        assert state(kubelet) == before and not is_guarded(tmp_path / "node/rules.back.json")
    finally:
        if agent.returncode is None:
            agent.kill()
            await agent.wait()
        await bus.close()
