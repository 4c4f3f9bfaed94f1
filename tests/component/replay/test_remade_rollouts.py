"""Rollouts under load, with crashes, restarts and changes of mind: each decision is made again, and no bad revision stays."""

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from kube import Key, Manifest
from testing.scenarios.target import MetricSample
from tidegate_cli.sim.world import World

SERVICE = "inference_autoscaler"
INFERENCE = Key("InferenceService.serving.kserve.io", "default", "m")
NANO = 10**9


def service(number: int, plan: str) -> Manifest:
    containers = [{"name": "kserve-container", "image": f"model:{number}", "resources": {"requests": {"cpu": "1"}}}]
    annotations = {"tidegate.dev/rollout": plan, "tidegate.dev/rollout-lost": "20s"}
    if plan == "canary":
        annotations["tidegate.dev/rollout-steps"] = "20:10s,50:10s,100:10s"
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "m", "annotations": annotations},
        "spec": {"predictor": {"minReplicas": 2, "maxReplicas": 6, "scaleTarget": 10, "containers": containers}},
    }


def status(world: World) -> Manifest:
    found = world.store().get(INFERENCE)
    assert found is not None
    told: Manifest = found.status
    return told


def traffic(world: World) -> dict[str, int]:
    listed = status(world)["components"]["predictor"].get("traffic") or ()
    return {one["revisionName"]: one["percent"] for one in listed}


class Gateway:
    """Counts what each revision answers, by its share; those in ``bad`` fail one of five."""

    def __init__(self, world: World) -> None:
        self.world, self.bad = world, set[str]()
        self.requests, self.errors = Counter[str](), Counter[str]()

    def serve(self, requests: int) -> None:
        for revision, percent in traffic(self.world).items():
            self.requests[revision] += requests * percent // 100
            self.errors[revision] += requests * percent // 500 if revision in self.bad else 0
            labels = {"revision": revision}
            self.world.sample_metrics(
                [
                    MetricSample("service", "revision_errors_total", self.errors[revision] * NANO, INFERENCE, labels),
                    MetricSample(
                        "service", "revision_requests_total", self.requests[revision] * NANO, INFERENCE, labels
                    ),
                ]
            )


def begin(seed: int) -> tuple[World, Gateway]:
    world = World({}, {"podStart": "3s"}, seed)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n0"}}
    world.put_nodes([{**node, "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110"}}}])
    assert world.apply([service(1, "canary")]) == [None]
    world.advance(30_000)
    return world, Gateway(world)


def check(world: World) -> None:
    """Requests go to revisions with a pod that serves, or to one alone; shares are the whole."""
    split = traffic(world)
    assert sum(split.values()) == 100
    deployments = (world.store().get(Key("Deployment.apps", "default", f"{name}-deployment")) for name in split)
    serving = [int(one.status.get("availableReplicas") or 0) for one in deployments if one is not None]
    assert len(serving) < 2 or all(serving), (split, serving)
    assert world.violations() == []


@pytest.mark.parametrize("seed", range(2))
def test_the_same_bytes_come_out(seed: int, remade: Callable[[World, str], Counter[str]]) -> None:
    random, (world, gateway) = Random(seed), begin(seed)
    number = 1
    try:
        for _ in range(60):
            match random.randrange(6):
                case 0:
                    number += 1
                    plan = random.choice(["canary", "canary", "blue-green"])
                    assert world.apply([service(number, plan)]) == [None]
                    if random.random() < 0.5:
                        gateway.bad.add(f"m-predictor-{number:05d}")
                case 1:
                    world.restart(["autoscaler"])
                case 2:
                    load = random.choice([0, 15, 40]) * NANO
                    world.sample_metrics([MetricSample("service", "concurrency", load, INFERENCE)])
                case _:
                    gateway.serve(random.choice([50, 400, 2_000]))
            world.advance(random.choice([500, 2_000, 6_000, 13_000]))
            check(world)
        compared = remade(world, SERVICE)
        assert compared["TrafficSplit"] > 5, compared
    finally:
        world.close()


@pytest.mark.parametrize("killed", [False, True])
def test_a_bad_revision_goes_and_stays_away_under_load(killed: bool) -> None:
    """Also where the autoscaler dies in every step: nothing flaps, and nobody is told to go to who is gone."""
    world, gateway = begin(7)
    seen: list[dict[str, int]] = []
    try:
        assert world.apply([service(2, "canary")]) == [None]
        gateway.bad.add("m-predictor-00002")
        for _ in range(60):
            gateway.serve(500)
            world.sample_metrics([MetricSample("service", "concurrency", 35 * NANO, INFERENCE)])
            if killed:
                world.restart(["autoscaler"])
            world.advance(2_000)
            check(world)
            if not seen or seen[-1] != traffic(world):
                seen.append(traffic(world))
        assert seen == [
            {"m-predictor-00001": 100},
            {"m-predictor-00001": 80, "m-predictor-00002": 20},
            {"m-predictor-00001": 100},
        ]
        condition = next(one for one in status(world)["conditions"] if one["type"] == "RolledOut")
        assert (condition["status"], condition["reason"]) == ("False", "ErrorRateHigher")
        gone = world.store().get(Key("Deployment.apps", "default", "m-predictor-00002-deployment"))
        assert gone is None or gone.spec["replicas"] == 0
    finally:
        world.close()


def test_a_good_revision_is_promoted_while_the_load_grows() -> None:
    world, gateway = begin(8)
    try:
        assert world.apply([service(2, "canary")]) == [None]
        for step in range(60):
            gateway.serve(500)
            world.sample_metrics([MetricSample("service", "concurrency", min(50, 10 + step) * NANO, INFERENCE)])
            world.advance(2_000)
            check(world)
        assert traffic(world) == {"m-predictor-00002": 100}
        size = world.store().get(Key("Deployment.apps", "default", "m-predictor-00002-deployment"))
        assert size is not None and size.spec["replicas"] == 6
    finally:
        world.close()
