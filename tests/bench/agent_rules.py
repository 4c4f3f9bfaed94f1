"""What keeping a node's rules costs its agent: a hundred pods in real control groups, one round a second."""

import asyncio
import os
import tempfile
import time
from pathlib import Path

from tests.bench.figures import Figure, at_most

from kube import Manifest
from node_agent.close_look import CloseLook
from node_agent.colocating import PEEK_MS, Colocation
from node_agent.domain.limits import Limits
from node_agent.inventory.hardware import find_hardware
from node_agent.layouts import LocalLayout
from node_agent.ports import Assignment
from node_agent.runtime.cgroups import Cgroups, find_cgroups
from node_agent.runtime.knob_writer import KnobWriter
from node_agent.runtime.use_files import UseFiles

PODS = 100
ROUNDS = 60
RULES: Manifest = {
    "resourceUsedThresholdWithBE": {"enable": True, "cpuSuppressPolicy": "cfsQuota", "cpuSuppressThresholdPercent": 95},
    "cpuBurstStrategy": {"policy": "auto"},
    "resourceQOSStrategy": {"beClass": {"cpuQOS": {"enable": True}}},
}
BATCH = {"kubernetes.io/batch-cpu": "500", "kubernetes.io/batch-memory": "64Mi"}


async def agent_rules() -> list[Figure]:
    """The part of a core that rounds and the looks between them take; nothing where there are no control groups."""
    cgroups = find_cgroups(f"tidegate-bench-{os.getpid()}")
    if cgroups.hierarchy is None or cgroups.hierarchy.use_paths() is None:
        print(f"agent-rules: skipped, there are no control groups to be had here: {cgroups.why}")
        return []
    folders = {f"u{number}": f"besteffort/u{number}" if number % 2 else f"u{number}" for number in range(PODS)}
    try:
        for folder in folders.values():
            cgroups.make(folder, Limits())
            cgroups.make(f"{folder}/main", Limits())
        with tempfile.TemporaryDirectory() as kept:
            return await _measure(cgroups, folders, Path(kept))
    finally:
        for folder in folders.values():
            cgroups.remove(f"{folder}/main")
            cgroups.remove(folder)
        cgroups.release()


async def _measure(cgroups: Cgroups, folders: dict[str, str], kept: Path) -> list[Figure]:
    hierarchy = cgroups.hierarchy
    paths = hierarchy.use_paths() if hierarchy is not None else None
    assert hierarchy is not None and paths is not None
    layout, cpus = LocalLayout(lambda: folders), os.sched_getaffinity(0)
    keeper = Colocation(
        find_hardware(cpus),
        layout,
        CloseLook(layout, UseFiles(paths)),
        KnobWriter(hierarchy.knobs()),
        kept,
        lambda: time.time_ns() // 1_000_000,
        lambda wishes: None,
    )
    amounts = {"cpu": str(len(cpus)), "memory": "64Gi"}
    node = {"status": {"capacity": amounts, "allocatable": amounts}}
    pods = tuple(pod_manifest(uid, folder != uid) for uid, folder in folders.items())
    keeper.assign(Assignment("bench", 1, pods, slo=RULES, node_object=node))
    keeper.round()
    rounds = peeks = 0.0
    for _ in range(ROUNDS):
        await asyncio.sleep(0.06)
        begun = time.process_time()
        keeper.round()
        done = time.process_time()
        keeper.peek()
        rounds, peeks = rounds + done - begun, peeks + time.process_time() - done
    part = (rounds + peeks * 1000 / PEEK_MS) / ROUNDS * 100
    return [at_most(f"keeping the rules of a node with {PODS} pods, of a core", part, "%", 1.0, "sampled every second")]


def pod_manifest(uid: str, best_effort: bool) -> Manifest:
    """One of the pods: half of them serve, half are batch work."""
    labels = {"koordinator.sh/qosClass": "BE" if best_effort else "LS"}
    requests = BATCH if best_effort else {"cpu": "100m", "memory": "64Mi"}
    limits = BATCH if best_effort else {"cpu": "200m", "memory": "128Mi"}
    container = {"name": "main", "resources": {"requests": requests, "limits": limits}}
    spec = {"priority": 5500 if best_effort else 9500, "containers": [container]}
    return {"metadata": {"uid": uid, "name": uid, "namespace": "bench", "labels": labels}, "spec": spec}
