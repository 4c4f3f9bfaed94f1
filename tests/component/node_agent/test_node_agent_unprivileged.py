"""An agent that is not root: pods run as its own user, kept apart by user namespaces where the machine has them."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

USER = 54_321

AGENT = """
import asyncio, json, os, sys, time
from pathlib import Path
from node_agent.agent import Agent
from node_agent.ports import Assignment
from node_agent.settings import AgentSettings

class Upstream:
    async def report(self, report):
        for pod in report.pods:
            if pod.status["phase"] in ("Succeeded", "Failed"):
                self.status = pod.status
                self.done.set()
    async def secret(self, namespace, name):
        raise LookupError(name)

async def main():
    upstream = Upstream()
    upstream.done = asyncio.Event()
    agent = Agent(AgentSettings("node-a", Path(sys.argv[1])), upstream, lambda: time.time_ns() // 1_000_000)
    maps = {"default/conf": {"value": "here"}}
    hosts = {"default": (("127.20.0.7", ("peer",)),)}
    agent.assign(Assignment("node-a", 1, tuple(json.loads(sys.argv[2])), maps, hosts))
    task = asyncio.create_task(agent.run())
    await asyncio.wait([task, asyncio.create_task(upstream.done.wait())], return_when=asyncio.FIRST_COMPLETED)
    log = agent.log_file("uid-own", "main").read_text()
    print(json.dumps({"isolation": agent.isolation.described(), "status": upstream.status, "log": log}))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

asyncio.run(main())
"""


async def run_as_user(folder: Path, *pods: Any) -> Any:
    """What the agent found and what its pod said, when it runs as USER; by a Python that this user may run."""
    python = "/usr/bin/python3"
    if os.geteuid() != 0:
        pytest.skip("needs root to become somebody else")
    paths = [path for path in sys.path if path and not path.startswith(sys.base_prefix)]
    data = folder / "own"
    data.mkdir()
    os.chown(data, USER, USER)
    process = await asyncio.create_subprocess_exec(
        python, "-c", AGENT, str(data), json.dumps(pods),
        env={"PYTHONPATH": ":".join(paths), "PATH": "/usr/bin:/bin"}, user=USER, group=USER, extra_groups=[],
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, errors = await process.communicate()
    if b"ImportError" in errors or b"ModuleNotFoundError" in errors:
        pytest.skip(f"{python} cannot run this code: {errors.decode()[-200:]}")
    assert process.returncode == 0, errors.decode()
    return json.loads(out)


async def test_an_agent_without_root_says_what_is_not_in_force_and_runs_its_pods(
    bench_with: Any, open_folder: Path
) -> None:
    async with bench_with() as bench:
        script = """
            id -u; cat $TIDEGATE_VOLUME_C/value /no-such-root/conf/value 2>/dev/null; echo
            python3 -c "import socket; print(socket.gethostbyname('peer'))"; grep -c . /proc/self/uid_map; hostname
            touch /etc/tidegate-new 2>/dev/null || echo harmless; grep NoNewPrivs /proc/self/status
        """
        container = {"volumeMounts": [{"name": "c", "mountPath": "/no-such-root/conf"}]}
        pod = bench.pod(
            "own", "sh", "-c", script, volumes=[{"name": "c", "configMap": {"name": "conf"}}], container=container
        )
        found = await run_as_user(open_folder, pod)
    assert found["status"]["phase"] == "Succeeded", found
    assert found["isolation"]["users"].startswith("none") and found["isolation"]["limits"].startswith("none")
    said = found["log"].split("\n")
    assert said[:3] == [str(USER), "here", "127.20.0.7"]
    if found["isolation"]["files"].startswith("user namespace"):
        assert said[4] == "own"
    assert said[5:7] == ["harmless", "NoNewPrivs:\t1"]
