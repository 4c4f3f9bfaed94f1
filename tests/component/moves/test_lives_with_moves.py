"""Lives of whole systems in which pods are moved: they come to rest, and restarts change nothing."""

from random import Random
from typing import Any

import pytest

from kube import Manifest, Object
from testing.scenarios.target import NodeUsage
from tidegate_cli.sim.world import World

MINUTE = 60_000
POLICY: Manifest = {
    "lowThresholds": {"cpu": 30},
    "highThresholds": {"cpu": 50},
    "anomalyCondition": {"consecutiveAbnormalities": 1},
    "migration": {"objectLimiters": {"workload": {"duration": "1m"}}},
    "strategies": {"RemovePodsViolatingNodeTaints": {}, "RemovePodsViolatingNodeAffinity": {}},
}
USED = (200, 500, 900, 1500)
MARK = 5000


def node(name: str, random: Random) -> Manifest:
    labels = {"kubernetes.io/hostname": name, "disk": random.choice(["ssd", "ssd", "hdd"])}
    status = {"allocatable": {"cpu": "10", "memory": "64Gi", "pods": "110"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def replica_set(name: str, random: Random) -> Manifest:
    """Its pods use so much, which stands on them."""
    spec: Manifest = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m"}}}]}
    if random.random() < 0.4:
        spec["nodeSelector"] = {"disk": "ssd"}
    labels = {"app": name, "uses": str(random.choice(USED))}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": random.randint(2, 6), "selector": {"matchLabels": {"app": name}}, "template": template},
    }


def budget(name: str) -> Manifest:
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": name}}}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}


def report(world: World) -> dict[str, int]:
    """Every node says what its pods use; the sums."""
    found: dict[str, int] = {}
    for key in sorted(world.store().of_kind("Node")):
        pods = [pod for pod in pods_of(world) if pod.spec.get("nodeName") == key.name]
        used = {("default", pod.name): {"cpu": int(pod.labels["uses"]), "memory": 1} for pod in pods}
        found[key.name] = sum(amounts["cpu"] for amounts in used.values())
        world.sample_usage(key.name, NodeUsage({"cpu": found[key.name], "memory": 1}, {"cpu": 0}, used))
    return found


def pods_of(world: World) -> list[Object]:
    return sorted(world.store().of_kind("Pod").values(), key=lambda pod: pod.key)


def begun(seed: int) -> tuple[World, Random]:
    """Some nodes are full of pods when others come, and one that had pods has a taint since."""
    random = Random(seed)
    world = World({"descheduler": POLICY}, {"podStart": "3s", "termination": "7s"}, seed)
    world.put_nodes([node(f"old-{number}", random) for number in range(2)])
    names = [f"w{number}" for number in range(random.randint(3, 6))]
    assert world.apply([*(replica_set(name, random) for name in names), *(budget(name) for name in names[:2])])
    world.settle()
    world.advance(MINUTE)
    world.put_nodes([node(f"new-{number}", random) for number in range(random.randint(1, 3))])
    if seed % 2:
        world.patch_node("old-0", {"spec": {"taints": [{"key": "kept", "effect": "NoSchedule"}]}})
    return world, random


def lived(seed: int, *, restarts: bool) -> tuple[list[Any], World]:
    """Half an hour, in which no node gets hotter; what was evicted, and where how many pods of which workload are."""
    world, _ = begun(seed)
    chance = Random(seed + 1000)
    heats: list[int] = []
    for _ in range(30):
        heats.append(sum(max(0, used - MARK) for used in report(world).values()))
        world.advance(MINUTE // 2)
        if restarts and chance.random() < 0.5:
            world.restart([chance.choice(["controllers", "controllers", "all"])])
        world.advance(MINUTE // 2)
        assert world.violations() == []
    # When the others have come the scheduler places who has waited, as it likes; from then on pods move by plans alone.
    assert heats[1:] == sorted(heats[1:], reverse=True)
    places = sorted((pod.labels["app"], str(pod.spec.get("nodeName"))) for pod in pods_of(world))
    return [world.evictions(), places], world


@pytest.mark.parametrize("seed", range(4))
def test_a_life_with_moves_comes_to_rest(seed: int) -> None:
    """In the last ten minutes nobody moves; no pod was moved twice; nobody waits; who is gone was allowed to go."""
    (evicted, places), world = lived(seed, restarts=False)
    try:
        assert all(node != "None" for _, node in places)
        assert len(evicted) <= len(places), "each went at most once, or what came after them did not"
        before = len(evicted)
        for _ in range(10):
            report(world)
            world.advance(MINUTE)
        assert len(world.evictions()) == before
    finally:
        world.close()


@pytest.mark.parametrize("seed", range(3))
def test_restarts_change_no_move(seed: int) -> None:
    (expected, world), (found, other) = lived(seed, restarts=False), lived(seed, restarts=True)
    world.close()
    other.close()
    assert [len(expected[0]), expected[1]] == [len(found[0]), found[1]]
