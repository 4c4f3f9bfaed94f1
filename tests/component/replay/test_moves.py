"""What would be moved: read before it happens, by the service's own rules or by others, and nothing is touched."""

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from chassis.snapshots import Snapshots
from kube import Manifest
from resources import Amounts
from testing.scenarios.target import NodeUsage
from tidegate.codec.snapshots import pack, unpack
from tidegate.snapshot.v1 import snapshot_pb2
from tidegate_cli.commands.moves import _plan, plan_lines
from tidegate_cli.failures import Failure
from tidegate_cli.sim.services import ROLES
from tidegate_cli.sim.world import World

POLICY: Manifest = {
    "lowThresholds": {"cpu": 30},
    "highThresholds": {"cpu": 50},
    "anomalyCondition": {"consecutiveAbnormalities": 1},
}


def web(count: int) -> Manifest:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [container], "nodeSelector": {"disk": "ssd"}},
    }
    spec = {"replicas": count, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": spec,
    }


def node(name: str, **labels: str) -> Manifest:
    status = {"allocatable": {"cpu": "10", "memory": "32Gi", "pods": "110"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


@pytest.fixture
def world() -> Iterator[World]:
    """A hot node with four pods, and a cool one that came later."""
    made = World({"descheduler": {**POLICY, "planOnly": True}}, {})
    made.put_nodes([node("hot", disk="ssd")])
    made.apply([web(4)])
    made.settle()
    made.put_nodes([node("cool", disk="ssd")])
    names = sorted(key.name for key in made.store().of_kind("Pod"))
    used: dict[tuple[str, str], Amounts] = {("default", name): {"cpu": 1500, "memory": 1} for name in names}
    made.sample_usage("hot", NodeUsage({"cpu": 6000, "memory": 4}, {"cpu": 0}, used))
    made.sample_usage("cool", NodeUsage({"cpu": 1000, "memory": 1}, {"cpu": 1000}, {}))
    made.settle()
    yield made
    made.close()


def snapshot(world: World) -> snapshot_pb2.SystemSnapshot:
    taker = Snapshots(world.bus, ROLES["all"], "test")

    async def take() -> snapshot_pb2.SystemSnapshot:
        logs, _ = await taker.logs()
        return taker.present(logs, list(world.view.store.objects.values()), world.view.standing(), world.now())

    return unpack(pack(world.do(take())))


def test_a_plan_says_who_would_move_where_and_why(world: World) -> None:
    plan = _plan(snapshot(world), None)
    (move,) = plan["moves"]
    assert (move["from"], move["to"], move["strategy"]) == ("hot", "cool", "LowNodeLoad")
    assert "6 of 10 cpu (60 %) are used, and 5 may be" in move["message"]
    cool, hot = plan["nodes"]
    assert (hot["heat"], hot["used"]["cpu"], hot["then"]["cpu"]) == ("high", "6 (60 %)", "4500m (45 %)")
    assert (cool["heat"], cool["used"]["cpu"], cool["then"]["cpu"]) == ("low", "1 (10 %)", "2500m (25 %)")


def test_a_plan_for_people_says_what_a_pod_uses(world: World) -> None:
    lines = plan_lines(_plan(snapshot(world), None))
    assert "from hot to cool (LowNodeLoad), which uses cpu 1500m" in lines[1]
    assert plan_lines(_plan(snapshot(world), {"nodeFit": False}))[:2] == [
        "Nobody would move: no strategy is set, nor thresholds of load",
        "  nodeFit false spares nobody a place: a reservation comes first in any case",
    ]


def test_a_plan_is_only_read(world: World) -> None:
    """Neither by being asked for, nor by the rounds of a service that only plans."""
    assert plan_lines(_plan(snapshot(world), None))[0] == "1 pod would move at 2026-01-01T00:02:00Z"
    world.advance(600_000)
    assert world.evictions() == [] and not world.store().of_kind("PodMigrationJob.scheduling.koordinator.sh")


def test_another_policy_can_be_tried(world: World) -> None:
    gentle = _plan(snapshot(world), {**POLICY, "highThresholds": {"cpu": 70}})
    assert gentle["moves"] == [] and plan_lines(gentle)[0].startswith("Nobody would move")
    paused = _plan(snapshot(world), {**POLICY, "paused": True})
    assert paused["moves"] == []


def test_who_stays_is_told_why(world: World) -> None:
    world.patch_node("cool", {"metadata": {"labels": {"disk": "none"}}})
    lines = plan_lines(_plan(snapshot(world), None))
    assert lines[0].startswith("Nobody would move")
    assert sum("no cool node would take it and stay below its mark" in line for line in lines) == 4


def test_a_policy_that_makes_no_sense_is_told(world: World) -> None:
    with pytest.raises(Failure, match="LowNodeLoad knows no lowThreshold;"):
        _plan(snapshot(world), {"lowThreshold": {"cpu": 1}})


def test_every_move_is_made_again_with_the_same_bytes(remade: Callable[[World, str], Counter[str]]) -> None:
    """Plans that remember how long a node has been hot, and each step of the migrations that follow."""
    policy = {**POLICY, "anomalyCondition": {"consecutiveAbnormalities": 2}, "strategies": {"RemoveDuplicates": {}}}
    world = World({"descheduler": policy}, {"podStart": "2s", "termination": "5s"})
    try:
        world.put_nodes([node("hot", disk="ssd")])
        world.apply([web(6)])
        world.settle()
        world.put_nodes([node("cool", disk="ssd"), node("cold", disk="ssd")])
        for minute in range(8):
            for name in ("hot", "cool", "cold"):
                pods = [pod for pod in world.store().of_kind("Pod").values() if pod.spec.get("nodeName") == name]
                used = {("default", pod.name): {"cpu": 1500, "memory": 1} for pod in pods}
                world.sample_usage(name, NodeUsage({"cpu": 1500 * len(used), "memory": 1}, {"cpu": 0}, used))
            world.advance(60_000)
            if minute == 4:
                world.restart(["controllers"])
        names = remade(world, "descheduler")
        assert {"MoveProposed", "MigrationStarted", "PodMigrated", "MigrationSucceeded"} <= names.keys()
    finally:
        world.close()
