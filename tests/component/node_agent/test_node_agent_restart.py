"""The agent, its shims and its spawner are killed at bad moments: nothing is lost, nothing runs twice."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kube import Manifest, parse_time
from node_agent.runtime.processes import all_processes

# A whole agent in a process of its own: prints "<uid> <phase>" for each report, until it is killed.
AGENT = """
import asyncio, json, sys, time
from pathlib import Path
from node_agent.agent import Agent
from node_agent.ports import Assignment
from node_agent.settings import AgentSettings

class Upstream:
    async def report(self, report):
        for pod in report.pods:
            print(pod.uid, pod.status["phase"], flush=True)
    async def secret(self, namespace, name):
        raise LookupError(name)

async def main():
    given = json.loads(sys.argv[1])
    given["data_dir"] = Path(given["data_dir"])
    agent = Agent(AgentSettings(**given), Upstream(), lambda: time.time_ns() // 1_000_000)
    agent.assign(Assignment("node-a", 1, tuple(json.loads(sys.argv[2]))))
    await agent.run()

asyncio.run(main())
"""


@asynccontextmanager
async def killed_agent(bench: Any, *pods: Manifest, until: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Instead of the bench's agent one in a process of its own, from its report ``until`` on; then it is killed."""
    await bench.stop()
    settings = {
        "node": "node-a",
        "data_dir": str(bench.settings.data_dir),
        "cgroup_parent": bench.settings.cgroup_parent,
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", AGENT, json.dumps(settings), json.dumps(pods), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    async with asyncio.timeout(60):
        while (line := (await process.stdout.readline()).decode().strip()) != until:
            assert line, "the agent ended"
    try:
        yield process
    finally:
        process.kill()
        await process.wait()


async def test_a_killed_agents_pods_go_on_and_its_successor_finds_them(bench: Any) -> None:
    script = "echo start >> $HOME/starts; while ! test -e $HOME/stop; do sleep 0.02; done; exit 5"
    asked = bench.pod("live", "sh", "-c", script)
    async with killed_agent(bench, asked, until="uid-live Running"):
        pass
    work = bench.settings.data_dir / "pods/uid-live/home"
    await bench.start()
    bench.assign(asked)
    await bench.upstream.phase("uid-live", "Running")
    (work / "stop").touch()
    await bench.upstream.phase("uid-live", "Failed")
    assert bench.upstream.container("uid-live")["state"]["terminated"]["exitCode"] == 5
    assert (work / "starts").read_text() == "start\n"


async def test_lines_that_are_written_while_no_agent_runs_have_their_times(bench: Any) -> None:
    script = "echo before; while ! test -e $HOME/go; do sleep 0.02; done; echo between; sleep 0.2; echo after; sleep 60"
    asked = bench.pod("told", "sh", "-c", script)
    file = bench.settings.data_dir / "logs/default_told_uid-told/main.log"

    async def until(text: str) -> None:
        while text not in file.read_text():
            await asyncio.sleep(0.02)

    async with asyncio.timeout(60), killed_agent(bench, asked, until="uid-told Running"):
        await until("before")
        await asyncio.sleep(0.1)
    killed_at = time.time()
    (bench.settings.data_dir / "pods/uid-told/home/go").touch()
    async with asyncio.timeout(60):
        await until("after")
    written_at = time.time()
    await asyncio.sleep(0.6)
    await bench.start()
    bench.assign(asked)
    await bench.upstream.phase("uid-told", "Running")
    lines = b"".join([piece async for piece in bench.told("uid-told", timestamps=True)]).decode().splitlines()
    (first, _), (second, between), (third, _) = [(parse_time(at) / 1000, word) for at, word in map(str.split, lines)]
    assert first < killed_at and between == "between"
    assert killed_at - 0.01 <= second < third - 0.1 and third <= written_at + 0.5
    assert file.read_text() == "before\nbetween\nafter\n"


async def test_an_end_that_nobody_saw_is_reported_with_its_exit_code(bench: Any) -> None:
    script = "while ! test -e $HOME/stop; do sleep 0.02; done; exit 6"
    asked = bench.pod("unseen", "sh", "-c", script)
    async with killed_agent(bench, asked, until="uid-unseen Running"):
        pass
    (bench.settings.data_dir / "pods/uid-unseen/home/stop").touch()
    while any("uid-unseen" in line for line in bench.leftovers()):
        await asyncio.sleep(0.01)
    await bench.start()
    await bench.upstream.phase("uid-unseen", "Failed")
    assert bench.upstream.container("uid-unseen")["state"]["terminated"]["exitCode"] == 6


async def test_an_agent_killed_while_it_starts_pods_starts_each_of_them_once(bench: Any) -> None:
    pods = [bench.pod(f"k{number}", "sh", "-c", "echo start >> $HOME/starts; sleep 1000") for number in range(6)]
    async with killed_agent(bench, *pods, until="uid-k0 Pending"):
        pass  # the others are somewhere between their record and their process
    await bench.start()
    bench.assign(*pods)
    for number in range(6):
        await bench.upstream.phase(f"uid-k{number}", "Running")
    starts = [bench.settings.data_dir / f"pods/uid-k{number}/home/starts" for number in range(6)]
    while not all(file.exists() for file in starts):
        await asyncio.sleep(0.01)
    assert [file.read_text() for file in starts] == ["start\n"] * 6


async def test_a_pod_that_lost_its_place_while_the_agent_was_down_is_stopped(bench: Any) -> None:
    asked = bench.pod("lost", "sleep", "1000")
    async with killed_agent(bench, asked, until="uid-lost Running"):
        pass
    await bench.start()
    assert bench.leftovers("sleep"), "an agent that knows no assignment yet stops nothing"
    bench.assign()
    await bench.upstream.until(lambda: "uid-lost" in bench.upstream.gone)
    assert bench.leftovers("sleep") == []


async def test_two_agents_do_not_share_a_data_folder(bench: Any) -> None:
    settings = {
        "node": "node-a",
        "data_dir": str(bench.settings.data_dir),
        "cgroup_parent": bench.settings.cgroup_parent,
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", AGENT, json.dumps(settings), "[]", stderr=asyncio.subprocess.PIPE
    )
    _, errors = await process.communicate()
    assert process.returncode and b"another agent works on this data folder" in errors


async def test_a_container_whose_shim_is_killed_counts_as_failed_and_is_ended_whole(bench: Any) -> None:
    script = "sleep 1000 & echo up; exec sleep 2000"
    await bench.run(bench.pod("shim", "sh", "-c", script), "Running")
    await bench.until_log("uid-shim", "up")
    process = bench.running._workers["uid-shim"].record.containers["main"].process
    os.kill(process.shim, signal.SIGKILL)
    await bench.upstream.phase("uid-shim", "Failed")
    ended = bench.upstream.container("uid-shim")["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (137, "ShimLost")
    assert "container main" in ended["message"]
    assert bench.leftovers("sleep") == []


async def test_a_shim_that_is_killed_without_control_groups_leaves_nothing_either(bench_with: Any) -> None:
    async with bench_with(enforce=False) as bench:
        await bench.run(bench.pod("shim", "sh", "-c", "sleep 1000 & echo up; exec sleep 2000"), "Running")
        await bench.until_log("uid-shim", "up")
        process = bench.running._workers["uid-shim"].record.containers["main"].process
        os.kill(process.shim, signal.SIGKILL)
        await bench.upstream.phase("uid-shim", "Failed")
        assert bench.leftovers("sleep") == []


async def test_a_killed_spawner_is_replaced_and_its_containers_go_on(bench: Any) -> None:
    await bench.run(bench.pod("first", "sleep", "1000"), "Running")
    node = bench.running._node
    os.kill(node.launcher.pid, signal.SIGKILL)
    bench.assign(bench.pod("first", "sleep", "1000"), bench.pod("second", "true"))
    await bench.upstream.phase("uid-second", "Succeeded")
    assert bench.upstream.statuses["uid-first"]["phase"] == "Running"
    assert len(bench.leftovers("sleep", "1000")) == 1


async def test_a_stopped_agent_leaves_its_pods_running_and_nothing_of_its_own(bench: Any) -> None:
    await bench.run(bench.pod("on", "sleep", "1000"), "Running")
    spawner = bench.running._node.launcher.pid
    await bench.stop()
    assert spawner not in {process.pid for process in all_processes()}
    assert len(bench.leftovers("sleep", "1000")) == 1
    await bench.start()
    await bench.upstream.phase("uid-on", "Running")


async def test_after_a_reboot_what_ran_counts_as_failed_and_is_started_again(bench: Any) -> None:
    await bench.run(bench.pod("boot", "sleep", "1000", restartPolicy="Always"), "Running")
    await bench.stop()
    shim = json.loads((bench.settings.data_dir / "pods/uid-boot/state/main.1.json").read_text())["shim"]
    os.kill(shim, signal.SIGKILL)
    (bench.settings.data_dir / "boot_id").write_text("another")
    await bench.start()
    await bench.upstream.until(lambda: bench.upstream.container("uid-boot")["restartCount"] == 1)
    last = bench.upstream.container("uid-boot")["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"]) == (137, "NodeRebooted")


async def test_a_pod_that_is_over_is_not_run_again_by_an_agent_that_knows_nothing_of_it(bench: Any) -> None:
    over, deleted = bench.pod("over", "sleep", "1000"), bench.pod("deleted", "sleep", "1000")
    over["status"]["phase"] = "Succeeded"
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    bench.assign(over, deleted)
    await bench.upstream.until(lambda: "uid-deleted" in bench.upstream.gone)
    assert "uid-over" not in bench.upstream.statuses and bench.leftovers("sleep") == []
