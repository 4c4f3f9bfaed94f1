"""Every decision about what is lent is made again from its snapshot, over samples, faults of the configuration and restarts."""

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from testing.scenarios.target import NodeUsage
from tidegate_cli.sim.world import World

SERVICE = "slo_controller"
NODES = ("n0", "n1", "n2")
GB = 10**9


def config(text: str) -> dict[str, Any]:
    metadata = {"name": "slo-controller-config", "namespace": "koordinator-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"resource-threshold-config": text}}


def pod(name: str, node: str) -> dict[str, Any]:
    requests = {"cpu": "4", "memory": "4G"}
    spec = {
        "nodeName": node,
        "priority": 9500,
        "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}],
    }
    metadata = {"name": name, "namespace": "default", "labels": {"koordinator.sh/qosClass": "LS"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}}


def live(world: World, random: Random, steps: int) -> None:
    """Pods come, use swings, the configuration is broken and mended, services start anew."""
    amounts = {"cpu": "32", "memory": "64G", "pods": "110"}
    world.put_nodes(
        [
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": amounts}}
            for name in NODES
        ]
    )
    recommendation = {
        "target": {"type": "podSelector", "podSelector": {"matchLabels": {"koordinator.sh/qosClass": "LS"}}}
    }
    api = {"apiVersion": "analysis.koordinator.sh/v1alpha1", "kind": "Recommendation"}
    assert world.apply([{**api, "metadata": {"name": "all"}, "spec": recommendation}]) == [None]
    there: dict[str, str] = {}
    for number in range(steps):
        choice, node = random.random(), random.choice(NODES)
        if choice < 0.2:
            there[f"p{number}"] = node
            world.seed([pod(f"p{number}", node)])
        elif choice < 0.7:
            used = {
                ("default", name): {"cpu": random.randint(0, 4000), "memory": random.randint(0, 4 * GB)}
                for name, on in there.items()
                if on == node
            }
            system = {"cpu": random.randint(500, 8_000), "memory": GB}
            world.sample_usage(node, NodeUsage({"cpu": 10_000, "memory": 9 * GB}, system, used))
        elif choice < 0.83:
            percent = random.choice(["40", "50", "x", "y"])
            world.apply(
                [config(f'{{"clusterStrategy": {{"enable": true, "cpuSuppressThresholdPercent": {percent}}}}}')]
            )
        elif choice < 0.88:
            world.restart(["controllers"])
        world.advance(random.choice([1_000, 20_000, 61_000, 400_000]))
        assert world.violations() == []


@pytest.mark.parametrize("seed", range(3))
def test_the_same_bytes_come_out(seed: int, remade: Callable[[World, str], Counter[str]]) -> None:
    world = World({"colocation": {"enable": True}}, {}, seed)
    try:
        live(world, Random(seed), 60)
        compared = remade(world, SERVICE)
        wanted = {"LendingComputed", "NodeSLOComputed", "SloConfigRefused", "RecommendationComputed"}
        assert wanted <= compared.keys() and compared["LendingComputed"] > 10, compared
    finally:
        world.close()
