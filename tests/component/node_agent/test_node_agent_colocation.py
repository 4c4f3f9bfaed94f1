"""The rules of a node on this machine's own control groups: what is decided is what the kernel holds real processes to."""

import asyncio
import os
import signal
import time
from typing import Any

import pytest

from kube import Manifest
from node_agent.runtime.knob_files import KnobFiles

CPUS = len(os.sched_getaffinity(0))
SPIN = """
import signal
signal.signal(signal.SIGUSR1, lambda *_: None)
signal.pause()
while True: pass
"""
HOGS = f"import os\nfor _ in range({CPUS - 1}): os.fork() or 0\nwhile True: pass"
BEST_EFFORT = {"labels": {"koordinator.sh/qosClass": "BE"}}


def knobs(bench: Any) -> KnobFiles:
    hierarchy = bench.running.isolation.cgroups.hierarchy
    if hierarchy is None or hierarchy.use_paths() is None:
        pytest.skip(
            f"no control groups here that rules could be put in force by: {bench.running.isolation.cgroups.why}"
        )
    return hierarchy.knobs()


def quota_us(files: KnobFiles, folder: str) -> int:
    """CPU time per 100 ms; all of the machine where there is no limit."""
    text = (files.read(folder, "cpu.max") or "").split()[0]
    return CPUS * 100_000 if text == "max" else int(text)


def node(**status: str) -> Manifest:
    amounts = {"cpu": str(CPUS), "memory": "8Gi", **status}
    return {"status": {"capacity": amounts, "allocatable": amounts}}


async def until(holds: Any, seconds: float = 10) -> float:
    """How long it took until it held."""
    begun = time.monotonic()
    while not holds():
        if time.monotonic() - begun > seconds:
            raise AssertionError(f"not within {seconds} s")
        await asyncio.sleep(0.01)
    return time.monotonic() - begun


def thresholds(**rules: Any) -> Manifest:
    return {"resourceUsedThresholdWithBE": {"enable": True, "cpuSuppressPolicy": "cfsQuota", **rules}}


async def test_a_batch_pod_is_held_to_what_it_asked_for_below_best_effort(bench: Any) -> None:
    files = knobs(bench)
    lent = {"kubernetes.io/batch-cpu": "500", "kubernetes.io/batch-memory": "64Mi"}
    pod = bench.pod(
        "crunch", "sleep", "1000", metadata=BEST_EFFORT, container={"resources": {"limits": lent, "requests": lent}}
    )
    await bench.run(pod, "Running")
    for folder in ("besteffort/uid-crunch", "besteffort/uid-crunch/main"):
        assert files.read(folder, "cpu.max") == "50000 100000"
        assert files.read(folder, "memory.max") == str(64 << 20)
        assert files.read(folder, "cpu.shares") in (None, "512")
    assert files.read("besteffort", "cpu.shares") in (None, "2")


async def test_a_step_of_the_online_load_is_answered_within_a_second(bench: Any, waits: Any, ahead: None) -> None:
    files = knobs(bench)
    # The pods get the machine, whatever else runs on it.
    files.write("", "cpu.shares", "200000")
    files.write("", "cpu.weight", "10000")
    web = bench.pod("web", "python", "-c", SPIN, container={"resources": {"requests": {"cpu": "1"}}})
    hog = bench.pod("hog", "python", "-c", HOGS, metadata=BEST_EFFORT)
    # Other programs of the machine are there too: with so high a threshold they do not decide the outcome.
    rules = thresholds(cpuSuppressThresholdPercent=200)
    bench.assign(web, hog, slo=rules, node=node())
    await bench.upstream.phase("uid-web", "Running")
    await bench.upstream.phase("uid-hog", "Running")
    await until(lambda: bench.running.colocation.newest.allowance.measured)
    serving = bench.running._workers["uid-web"].record.containers["main"].process.pid
    await until(lambda: waits(serving), 20)
    await asyncio.sleep(2)
    assert bench.running.colocation.newest.allowance.online < 100
    os.kill(serving, signal.SIGUSR1)

    def answered() -> bool:
        # What other programs of the machine use changes too, so the limit itself may not fall by as much.
        newest = bench.running.colocation.newest
        return newest.allowance.online >= 300 and quota_us(files, "besteffort") == newest.kept.held.quota_milli * 100

    took = await until(answered, 5)
    assert took <= 1.0, f"the load of one CPU was answered after {took:.2f} s"


async def test_switched_off_rules_leave_the_kernel_as_it_was(bench: Any) -> None:
    files = knobs(bench)
    hog = bench.pod("hog", "sleep", "1000", metadata=BEST_EFFORT)
    web = bench.pod("web", "sleep", "1000", container={"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}})
    rules: Manifest = thresholds(cpuSuppressThresholdPercent=10)
    rules["resourceQOSStrategy"] = {"beClass": {"cpuQOS": {"enable": True}}}
    rules["cpuBurstStrategy"] = {"policy": "cpuBurstOnly"}
    bench.assign(hog, web, slo=rules, node=node())
    await bench.upstream.phase("uid-hog", "Running")
    await bench.upstream.phase("uid-web", "Running")
    await until(lambda: quota_us(files, "besteffort") < CPUS * 20_000)
    await until(lambda: files.read("uid-web/main", "cpu.max.burst") == "100000")
    assert files.read("besteffort", "cpu.idle") == "1"
    bench.assign(hog, web, slo={}, node=node())
    await until(lambda: files.read("besteffort", "cpu.max") == "max 100000")
    await until(
        lambda: files.read("uid-web/main", "cpu.max.burst") == "0" and files.read("besteffort", "cpu.idle") == "0"
    )


async def test_an_agent_that_was_killed_is_followed_by_one_that_restores(bench: Any) -> None:
    """What a predecessor wrote is known to its successor, which gives it back when the rules are off by then."""
    files = knobs(bench)
    hog = bench.pod("hog", "sleep", "1000", metadata=BEST_EFFORT)
    bench.assign(hog, slo=thresholds(cpuSuppressThresholdPercent=10), node=node())
    await bench.upstream.phase("uid-hog", "Running")
    await until(lambda: quota_us(files, "besteffort") < CPUS * 20_000)
    await bench.stop()
    assert quota_us(files, "besteffort") < CPUS * 20_000, "nobody is let loose because nobody looks"
    await bench.start()
    bench.assign(hog, slo={}, node=node())
    await until(lambda: files.read("besteffort", "cpu.max") == "max 100000")


async def test_what_somebody_else_writes_is_put_right(bench: Any) -> None:
    files = knobs(bench)
    bench.assign(
        bench.pod("hog", "sleep", "1000", metadata=BEST_EFFORT),
        slo=thresholds(cpuSuppressThresholdPercent=10),
        node=node(),
    )
    await bench.upstream.phase("uid-hog", "Running")
    await until(lambda: quota_us(files, "besteffort") < CPUS * 20_000)
    files.write("besteffort", "cpu.max", "max 100000")
    await until(lambda: quota_us(files, "besteffort") < CPUS * 20_000, 12)


@pytest.mark.skipif(CPUS < 2, reason="it takes two CPUs to give one of them away")
async def test_a_pinned_pod_has_its_cpus_for_itself(bench: Any) -> None:
    files = knobs(bench)
    cpus = sorted(os.sched_getaffinity(0))
    own = {"scheduling.koordinator.sh/resource-status": f'{{"cpuset": "{cpus[0]}"}}'}
    metadata = {"labels": {"koordinator.sh/qosClass": "LSE"}, "annotations": own}
    whole = {"cpu": "1", "memory": "64Mi"}
    pin = bench.pod(
        "pin", "sleep", "1000", metadata=metadata, container={"resources": {"limits": whole, "requests": whole}}
    )
    web = bench.pod("web", "sleep", "1000", container={"resources": {"requests": {"cpu": "1"}}})
    hog = bench.pod("hog", "sleep", "1000", metadata=BEST_EFFORT)
    bench.assign(pin, web, hog, node=node())
    for uid in ("uid-pin", "uid-web", "uid-hog"):
        await bench.upstream.phase(uid, "Running")
    others = ",".join(map(str, cpus[1:])) if CPUS == 2 else None
    await until(lambda: files.read("uid-web", "cpuset.cpus") != files.read("uid-pin", "cpuset.cpus"))
    assert files.read("uid-pin", "cpuset.cpus") == str(cpus[0])
    assert files.read("uid-pin", "cpu.max") == "max 100000"
    pid = bench.running._workers["uid-hog"].record.containers["main"].process.pid
    await until(lambda: cpus[0] not in os.sched_getaffinity(pid))
    if others:
        assert files.read("besteffort", "cpuset.cpus") == files.read("uid-web", "cpuset.cpus") == others
    bench.assign(web, hog, node=node())
    await until(lambda: cpus[0] in os.sched_getaffinity(pid))


async def test_the_agent_says_whom_memory_makes_it_send_away(bench: Any) -> None:
    knobs(bench)
    hog = bench.pod(
        "hog", "python", "-c", "x = bytearray(64 << 20)\nwhile True: __import__('time').sleep(9)", metadata=BEST_EFFORT
    )
    small = {
        "status": {
            "capacity": {"cpu": str(CPUS), "memory": "64Mi"},
            "allocatable": {"cpu": str(CPUS), "memory": "64Mi"},
        }
    }
    bench.assign(hog, slo=thresholds(memoryEvictThresholdPercent=90), node=small)
    await bench.upstream.phase("uid-hog", "Running")
    await bench.upstream.until(lambda: any(report.evictions for report in bench.upstream.reports))
    (wish,) = next(report.evictions for report in bench.upstream.reports if report.evictions)
    assert (wish.uid, wish.reason) == ("uid-hog", "MemoryEvict") and "frees" in wish.message


async def test_an_error_in_a_decision_leaves_in_force_what_is_and_pods_run(
    bench: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    files = knobs(bench)
    hog = bench.pod("hog", "sleep", "1000", metadata=BEST_EFFORT)
    rules = thresholds(cpuSuppressThresholdPercent=10)
    bench.assign(hog, slo=rules, node=node())
    await bench.upstream.phase("uid-hog", "Running")
    await until(lambda: quota_us(files, "besteffort") < CPUS * 20_000)
    with monkeypatch.context() as broken:
        broken.setattr("node_agent.colocating.enforce", lambda *_: 1 // 0)
        bench.assign(hog, bench.pod("late", "sleep", "1000", metadata=BEST_EFFORT), slo=rules, node=node())
        await bench.upstream.phase("uid-late", "Running")
        await asyncio.sleep(1.2)
        assert quota_us(files, "besteffort") < CPUS * 20_000
        assert [one.message for one in caplog.records].count("rules_not_decided") == 1
    bench.assign(hog, slo={}, node=node())
    await until(lambda: files.read("besteffort", "cpu.max") == "max 100000")
