"""The agent that keeps a node's rules is killed, cut off, told wrong times, or has no room: nobody stays held, nobody unprotected."""

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kube import Manifest
from node_agent.runtime.guard import is_guarded
from node_agent.runtime.knob_files import KnobFiles

CPUS = len(os.sched_getaffinity(0))
LONG = ("sleep", "100000")
BEST_EFFORT, SYSTEM = ({"labels": {"koordinator.sh/qosClass": qos}} for qos in ("BE", "SYSTEM"))
AMOUNTS = {"cpu": str(CPUS), "memory": "8Gi"}
NODE: Manifest = {"status": {"capacity": AMOUNTS, "allocatable": AMOUNTS}}
KNOBS = ("cpu.max", "cpu.idle", "cpu.max.burst", "cpu.shares", "cpuset.cpus", "memory.max")
GROUPS = ("besteffort", "besteffort/uid-hog", "besteffort/uid-hog/main", "uid-web", "uid-web/main")
TIGHT: Manifest = {
    "resourceUsedThresholdWithBE": {"enable": True, "cpuSuppressPolicy": "cfsQuota", "cpuSuppressThresholdPercent": 10},
    "resourceQOSStrategy": {"beClass": {"cpuQOS": {"enable": True}}},
    "cpuBurstStrategy": {"policy": "cpuBurstOnly"},
}
BY_SET: Manifest = {
    "resourceUsedThresholdWithBE": {**TIGHT["resourceUsedThresholdWithBE"], "cpuSuppressPolicy": "cpuset"}
}

# A whole agent in a process of its own, which ends only when it is killed. Says when it has decided for the first time.
AGENT = """
import asyncio, functools, json, sys
from pathlib import Path
from chassis.clock import SteadyClock
from node_agent import kept_rules
from node_agent.agent import Agent
from node_agent.ports import Assignment
from node_agent.settings import AgentSettings

class Upstream:
    async def report(self, report):
        pass

async def main():
    given = json.loads(sys.argv[1])
    given["data_dir"] = Path(given["data_dir"])
    kept_rules.SAVE_EVERY_MS = 1000
    kept_rules.Guard = functools.partial(kept_rules.Guard, seconds=float(sys.argv[3]))
    agent = Agent(AgentSettings(**given), Upstream(), SteadyClock().now)
    pods, slo, node = json.loads(sys.argv[2])
    agent.assign(Assignment("node-a", 1, tuple(pods), slo=slo, node_object=node))
    running = asyncio.create_task(agent.run())
    while agent.colocation is None or agent.colocation.newest is None:
        await asyncio.sleep(0.01)
    print("decided", flush=True)
    await running

asyncio.run(main())
"""


def knobs(bench: Any) -> KnobFiles:
    hierarchy = bench.running.isolation.cgroups.hierarchy
    if hierarchy is None or hierarchy.use_paths() is None:
        pytest.skip(
            f"no control groups here that rules could be put in force by: {bench.running.isolation.cgroups.why}"
        )
    return hierarchy.knobs()


def state(files: KnobFiles, *groups: str) -> dict[str, str | None]:
    """All that rules could change."""
    found = {}
    for group in groups or GROUPS:
        for name in KNOBS:
            try:
                found[f"{group}/{name}"] = files.read(group, name)
            except OSError:
                continue
    return found


def is_held(files: KnobFiles) -> bool:
    return files.read("besteffort", "cpu.max") != "max 100000" and files.read("besteffort", "cpu.idle") in ("1", None)


async def until(holds: Any, seconds: float = 10) -> float:
    begun = time.monotonic()
    while not holds():
        assert time.monotonic() - begun < seconds, f"not within {seconds} s"
        await asyncio.sleep(0.02)
    return time.monotonic() - begun


async def until_as(before: dict[str, str | None], files: KnobFiles, seconds: float = 10) -> None:
    """Wait until all says what it said."""
    begun = time.monotonic()
    while (now := state(files)) != before:
        other = {key: (before.get(key), text) for key, text in now.items() if before.get(key) != text}
        assert time.monotonic() - begun < seconds, f"not within {seconds} s; before and now: {other}"
        await asyncio.sleep(0.02)


def pods_of(bench: Any) -> tuple[Manifest, Manifest]:
    lent = {"kubernetes.io/batch-cpu": "500", "kubernetes.io/batch-memory": "64Mi"}
    hog = bench.pod("hog", *LONG, metadata=BEST_EFFORT, container={"resources": {"limits": lent, "requests": lent}})
    web = bench.pod("web", *LONG, container={"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}})
    return hog, web


async def running(bench: Any, **rules: Any) -> tuple[Manifest, Manifest]:
    pods = pods_of(bench)
    bench.assign(*pods, node=NODE, **rules)
    for uid in ("uid-hog", "uid-web"):
        await bench.upstream.phase(uid, "Running")
    return pods


@asynccontextmanager
async def process(bench: Any, pods: Any, slo: Manifest, give_back_seconds: float = 300) -> AsyncIterator[Any]:
    """An agent that runs until it is killed, at the end of the block at the latest."""
    given = {"node": "node-a", "data_dir": str(bench.settings.data_dir), "cgroup_parent": bench.settings.cgroup_parent}
    words = [sys.executable, "-c", AGENT, json.dumps(given), json.dumps([pods, slo, NODE]), str(give_back_seconds)]
    made = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    try:
        yield made
    finally:
        made.kill()
        await made.wait()


async def decided(made: Any) -> None:
    async with asyncio.timeout(30):
        assert await made.stdout.readline() == b"decided\n", "the agent ended"


async def test_killed_at_any_moment_it_leaves_nobody_held_and_nobody_unprotected(bench: Any) -> None:
    """Again and again, while its rules change too; then one comes that protects, and one without rules."""
    files = knobs(bench)
    pods = await running(bench)
    before = state(files)
    await bench.stop()
    chance = random.Random(5)
    for _ in range(6):
        async with process(bench, pods, chance.choice((TIGHT, BY_SET, {}))) as made:
            await decided(made)
            await asyncio.sleep(chance.choice((0, chance.random() / 50, chance.random())))
    async with process(bench, pods, TIGHT) as made:
        begun = time.monotonic()
        await until(lambda: is_held(files))
        assert time.monotonic() - begun < 10
        await decided(made)
    assert is_held(files), "nobody is let loose at once because nobody looks"
    await bench.start()
    bench.assign(*pods, node=NODE)
    await until_as(before, files)


async def test_an_agent_that_never_comes_back_leaves_nobody_held_for_ever(bench: Any) -> None:
    """Its guard gives all back; here after three seconds."""
    files = knobs(bench)
    pods = await running(bench)
    before = state(files)
    await bench.running.give_back()
    await bench.stop()
    async with process(bench, pods, TIGHT, give_back_seconds=3) as made:
        await decided(made)
        await until(lambda: is_held(files))
        await asyncio.sleep(5)
        assert is_held(files), "it is there"
    await until_as(before, files, 20)
    await until(lambda: not is_guarded(bench.settings.data_dir / "rules.back.json"))
    await bench.start()
    bench.assign(*pods, node=NODE, slo=TIGHT)
    await until(lambda: is_held(files))


async def test_an_agent_that_ends_in_order_gives_all_back_and_its_guard_ends(bench: Any) -> None:
    files = knobs(bench)
    pods = await running(bench)
    before = state(files)
    bench.assign(*pods, node=NODE, slo=TIGHT)
    await until(lambda: is_held(files))
    await until(lambda: is_guarded(bench.settings.data_dir / "rules.back.json"))
    await bench.running.give_back()
    assert state(files) == before and not is_guarded(bench.settings.data_dir / "rules.back.json")
    await asyncio.sleep(1.2)
    assert state(files) == before
    await bench.stop()
    await bench.start()
    bench.assign(*pods, node=NODE, slo=TIGHT)
    await until(lambda: is_held(files))


async def test_rules_are_kept_while_nobody_can_be_told(bench: Any) -> None:
    """What was asked for meanwhile is said when somebody hears it, if it is still meant."""
    files = knobs(bench)
    hog = bench.pod(
        "hog", "python", "-c", "x = bytearray(64 << 20)\nimport time\ntime.sleep(1e5)", metadata=BEST_EFFORT
    )
    await bench.run(hog, "Running", node=NODE)
    bench.upstream.broken = True
    small = {"cpu": str(CPUS), "memory": "64Mi"}
    rules = {"resourceUsedThresholdWithBE": {**TIGHT["resourceUsedThresholdWithBE"], "memoryEvictThresholdPercent": 90}}
    bench.assign(hog, slo=rules, node={"status": {"capacity": small, "allocatable": small}})
    await until(lambda: files.read("besteffort", "cpu.max") != "max 100000")
    await until(lambda: bench.running.colocation.asked_to_leave == 1)
    assert not any(report.evictions for report in bench.upstream.reports)
    bench.upstream.broken = False
    await bench.upstream.until(lambda: any(report.evictions for report in bench.upstream.reports), 20)


@pytest.mark.parametrize("hours", [1, -1])
async def test_a_clock_that_is_set_throttles_nobody_and_evicts_nobody(bench: Any, hours: int) -> None:
    files = knobs(bench)
    rules = {
        "resourceUsedThresholdWithBE": {
            **TIGHT["resourceUsedThresholdWithBE"], "cpuSuppressThresholdPercent": 300, "cpuEvictThresholdPercent": 300,
            "memoryEvictThresholdPercent": 10_000, "evictEnabledPriorityThreshold": 7999,
        },
        "cpuBurstStrategy": {"policy": "auto"},
    }  # fmt: skip
    await running(bench, slo=rules)
    await until(lambda: bench.running.colocation.newest.allowance.measured)

    def quota() -> int:
        return int((files.read("besteffort", "cpu.max") or "").split()[0])

    assert quota() >= CPUS * 100_000
    bench.clock_shift_ms += hours * 3_600_000
    until_then = time.monotonic() + 4
    while time.monotonic() < until_then:
        await asyncio.sleep(0.05)
        assert quota() >= CPUS * 100_000 and files.read("uid-web/main", "cpu.max") == "100000 100000"
    assert bench.running.colocation.newest.allowance.measured and bench.running.colocation.asked_to_leave == 0
    used = [sample for report in bench.upstream.reports for sample in report.usage]
    assert all(0 <= sample.cpu_milli <= 2 * CPUS * 1000 for sample in used)


@pytest.fixture
def small_folder(open_folder: Path) -> Iterator[Path]:
    """A file system of two megabytes, as only root may mount one."""
    words = ["mount", "-t", "tmpfs", "-o", "size=2m,mode=711", "tidegate-test", str(open_folder)]
    mounted = subprocess.run(words, capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"no file system of its own can be mounted here: {mounted.stderr.strip()}")
    yield open_folder
    subprocess.run(["umount", "--lazy", str(open_folder)], check=True)


async def test_a_full_disk_keeps_no_rule_from_holding_or_from_being_given_back(
    small_folder: Path, bench_with: Any
) -> None:
    async with bench_with() as bench:
        files = knobs(bench)
        pods = await running(bench)
        before = state(files)
        filler = small_folder / "filler"
        with filler.open("wb", buffering=0) as stream:
            while True:
                try:
                    if not stream.write(b"x" * 4096):
                        break
                except OSError:
                    break
        bench.assign(*pods, node=NODE, slo=TIGHT)
        await until(lambda: is_held(files))
        await bench.stop()
        await bench.start()
        bench.assign(*pods, node=NODE)
        await until_as(before, files)
        filler.unlink()
