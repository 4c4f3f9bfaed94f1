"""ScaledObjects over time: waking, sleeping, fallback, schedules, restarts."""

from typing import Any

import pytest

from kube import Key

SCALED = "ScaledObject.keda.sh"
MADE = Key("HorizontalPodAutoscaler.autoscaling", "default", "keda-hpa-web")
QUEUE: dict[str, Any] = {"type": "prometheus", "metadata": {"query": "queue", "threshold": "10"}}


def scale(cluster: Any, *triggers: dict[str, Any], annotations: dict[str, str] | None = None, **spec: Any) -> None:
    wanted = {"scaleTargetRef": {"name": "web"}, "triggers": [*(triggers or (QUEUE,))], **spec}
    metadata = {"name": "web", "annotations": annotations or {}}
    cluster.put({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": metadata, "spec": wanted})


def sample(cluster: Any, value: Any, metric: str = "s0-prometheus") -> None:
    cluster.sample(metric, value, {"scaledobject.keda.sh/name": "web"})


def test_it_makes_an_autoscaler_of_its_own(cluster: Any) -> None:
    cluster.deployment(2)
    sample(cluster, 20)
    scale(cluster, maxReplicaCount=7, advanced={"horizontalPodAutoscalerConfig": {"behavior": {"scaleUp": {}}}})
    made = cluster.store.objects[MADE]
    assert (made.spec["minReplicas"], made.spec["maxReplicas"], made.spec["behavior"]) == (1, 7, {"scaleUp": {}})
    assert made.spec["metrics"][0]["external"]["target"] == {"type": "AverageValue", "averageValue": "10"}
    assert made.controller["name"] == "web"
    scale(cluster, minReplicaCount=2, maxReplicaCount=9)
    assert cluster.store.objects[MADE].spec["maxReplicas"] == 9
    cluster.remove(MADE)
    cluster.advance(30)
    assert MADE in cluster.store.objects


def test_it_wakes_to_one_and_its_autoscaler_goes_on_from_there(cluster: Any) -> None:
    cluster.deployment(0)
    sample(cluster, 0)
    scale(cluster)
    assert cluster.replicas() == 0
    sample(cluster, 35)
    cluster.advance(30)
    assert cluster.replicas() == 1
    cluster.advance(15)
    assert cluster.replicas() == 4


@pytest.mark.parametrize(("value", "replicas"), [(5, 0), (6, 1)])
def test_a_trigger_is_active_above_its_activation(cluster: Any, value: int, replicas: int) -> None:
    trigger = {"type": "prometheus", "metadata": {"query": "q", "threshold": "10", "activationThreshold": "5"}}
    cluster.deployment(0)
    sample(cluster, value)
    scale(cluster, trigger)
    assert cluster.replicas() == replicas


def test_it_sleeps_when_nothing_was_active_for_longer_than_the_cooldown(cluster: Any) -> None:
    cluster.deployment(1)
    sample(cluster, 5)
    scale(cluster, cooldownPeriod=60)
    cluster.advance(60)
    sample(cluster, 0)
    cluster.advance(60)
    assert cluster.replicas() == 1
    cluster.advance(30)
    assert cluster.replicas() == 0


def test_a_restart_does_not_forget_when_it_was_active(cluster: Any) -> None:
    cluster.deployment(1)
    sample(cluster, 5)
    scale(cluster, cooldownPeriod=60)
    cluster.advance(60)
    cluster.restart()
    sample(cluster, 0)
    cluster.advance(60)
    assert cluster.replicas() == 1
    cluster.advance(30)
    assert cluster.replicas() == 0


def test_a_source_that_is_silent_holds_the_size_and_never_means_zero(cluster: Any) -> None:
    cluster.deployment(3)
    sample(cluster, 30)
    scale(cluster, cooldownPeriod=0)
    sample(cluster, None)
    cluster.advance(1200)
    assert cluster.replicas() == 3
    assert cluster.condition("Ready", of=SCALED) == ("False", "TriggerError")


@pytest.mark.parametrize(
    ("behavior", "replicas"),
    [("static", 6), ("currentReplicas", 3), ("currentReplicasIfHigher", 6), ("currentReplicasIfLower", 3)],
)
def test_after_more_failures_than_allowed_it_falls_back(cluster: Any, behavior: str, replicas: int) -> None:
    cluster.deployment(3)
    sample(cluster, 30)
    scale(cluster, minReplicaCount=1, fallback={"failureThreshold": 3, "replicas": 6, "behavior": behavior})
    sample(cluster, None)
    cluster.advance(15)
    assert cluster.replicas() == 3
    cluster.advance(60)
    assert cluster.replicas() == replicas
    assert cluster.condition("Fallback", of=SCALED) == ("True", "FallbackExists")
    sample(cluster, 30)
    cluster.advance(30)
    assert cluster.condition("Fallback", of=SCALED) == ("False", "NoFallbackFound")


def test_a_schedule_in_a_time_zone(cluster: Any) -> None:
    """It is 09:00 in Tokyo when the clock starts."""
    hours = {"timezone": "Asia/Tokyo", "start": "0 10 * * *", "end": "30 10 * * *", "desiredReplicas": "3"}
    cluster.deployment(0)
    scale(cluster, {"type": "cron", "metadata": hours})
    cluster.advance(3599)
    assert cluster.replicas() == 0
    cluster.advance(46)
    assert cluster.replicas() == 3
    cluster.advance(30 * 60 + 300)
    assert cluster.replicas() == 0


def test_who_has_a_size_of_idleness_sleeps_at_it(cluster: Any) -> None:
    cluster.deployment(2)
    sample(cluster, 0)
    scale(cluster, minReplicaCount=2, idleReplicaCount=0)
    assert cluster.replicas() == 0
    sample(cluster, 1)
    cluster.advance(30)
    assert cluster.replicas() == 2


def test_a_pause_keeps_a_number(cluster: Any) -> None:
    cluster.deployment(4)
    sample(cluster, 0)
    scale(cluster, annotations={"autoscaling.keda.sh/paused-replicas": "2"})
    assert cluster.replicas() == 2
    cluster.advance(600)
    assert cluster.replicas() == 2
    assert cluster.condition("Paused", of=SCALED) == ("True", "ScaledObjectPaused")
