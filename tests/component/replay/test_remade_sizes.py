"""Every decision about sizes and shares is made again from its snapshot, over samples, changes and restarts."""

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from cluster_gateway.local_cluster import LocalCluster
from cluster_gateway.refused_commit import refused
from kube import Key, Outcome
from testing.scenarios.target import MetricSample
from tidegate.decision.v1 import decision_pb2
from tidegate_cli.sim.world import World

SERVICE = "inference_autoscaler"
INFERENCE = "InferenceService.serving.kserve.io"
NANO = 10**9
LABELS = {"scaledobject.keda.sh/name": "job"}


def deployment(name: str) -> dict[str, Any]:
    labels = {"app": name}
    containers = [{"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "100m"}}}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def autoscaler(most: int) -> dict[str, Any]:
    target = {"type": "AverageValue", "averageValue": "10"}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "maxReplicas": most,
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}},
        "metrics": [{"type": "External", "external": {"metric": {"name": "queue"}, "target": target}}],
    }
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": spec,
    }


def scaled(most: int) -> dict[str, Any]:
    triggers = [{"type": "prometheus", "metadata": {"query": "q", "threshold": "10"}}]
    spec = {"scaleTargetRef": {"name": "job"}, "maxReplicaCount": most, "cooldownPeriod": 60, "triggers": triggers}
    return {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "job"}, "spec": spec}


def service(image: str, share: int) -> dict[str, Any]:
    containers = [{"name": "kserve-container", "image": image, "resources": {"requests": {"cpu": "1"}}}]
    predictor = {"minReplicas": 0, "scaleTarget": 10, "canaryTrafficPercent": share, "containers": containers}
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "m"},
        "spec": {"predictor": predictor},
    }


def live(world: World, random: Random, steps: int) -> None:
    """Loads swing, sources fall silent, images and bounds change, the autoscaler starts anew."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n0"}}
    world.put_nodes([{**node, "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110"}}}])
    assert set(world.apply([deployment("web"), deployment("job"), autoscaler(9), scaled(5), service("a:1", 20)])) == {
        None
    }
    for _ in range(steps):
        value = random.choice([None, 0, 0, 5, 35, 90])
        nano = None if value is None else value * NANO
        match random.randrange(9):
            case 0 | 1:
                world.sample_metrics([MetricSample("external", "queue", nano)])
            case 2 | 3:
                world.sample_metrics([MetricSample("external", "s0-prometheus", nano, labels=LABELS)])
            case 4 | 5:
                world.sample_metrics([MetricSample("service", "concurrency", nano, Key(INFERENCE, "default", "m"))])
            case 6:
                assert world.apply([service(random.choice(["a:1", "a:2"]), random.choice([20, 100]))]) == [None]
            case 7:
                assert set(world.apply([autoscaler(random.choice([6, 9])), scaled(random.choice([3, 5]))])) == {None}
            case 8:
                world.restart(["autoscaler"])
        world.advance(random.choice([500, 1_000, 2_000, 9_000, 15_000, 31_000, 100_000]))
        assert world.violations() == []


@pytest.mark.parametrize("seed", range(3))
def test_the_same_bytes_come_out(seed: int, remade: Callable[[World, str], Counter[str]]) -> None:
    world = World({}, {"podStart": "3s"}, seed)
    try:
        live(world, Random(seed), 70)
        compared = remade(world, SERVICE)
        wanted = {"ReplicasScaled", "ScalingExplained", "InferenceServiceMade", "TrafficSplit"}
        assert wanted <= compared.keys() and compared["ReplicasScaled"] > 10, compared
    finally:
        world.close()


@pytest.mark.parametrize("seed", range(2))
def test_what_was_refused_and_is_decided_again_comes_out_the_same(
    seed: int, remade: Callable[[World, str], Counter[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every third decision is refused, as if somebody had changed what it touches in the meantime."""
    fate, carry_out, refusals = Random(seed), LocalCluster.carry_out, Counter[str]()

    def refusing(self: LocalCluster, service: str, commit: decision_pb2.Commit, *, stale: bool) -> list[Outcome]:
        if service == SERVICE and fate.randrange(3) == 0:
            refusals.update(item.name for item in commit.decisions)
            return refused(commit, "somebody was faster")
        return carry_out(self, service, commit, stale=stale)

    monkeypatch.setattr(LocalCluster, "carry_out", refusing)
    world = World({}, {"podStart": "3s"}, seed)
    try:
        live(world, Random(seed), 40)
        assert remade(world, SERVICE)["ReplicasScaled"] > 10
        assert refusals["ReplicasScaled"] > 3, refusals
    finally:
        world.close()
