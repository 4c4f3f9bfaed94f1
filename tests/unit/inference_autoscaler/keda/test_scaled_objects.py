"""ScaledObjects over time: waking, sleeping, fallback, schedules, restarts."""

from typing import Any

import pytest

from admission.domain.metric_values import MetricIndex, NotKnown, external
from inference_autoscaler.domain.core import AutoscalerCore
from inference_autoscaler.domain.policy import AutoscalerPolicy
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
    sample(cluster, 90)
    cluster.advance(600)
    assert cluster.replicas() == 2
    assert MADE not in cluster.store.objects, "whoever decides on it would move what is to be kept"
    assert cluster.condition("Paused", of=SCALED) == ("True", "ScaledObjectPaused")


CRON = {
    "type": "cron",
    "metadata": {"timezone": "UTC", "start": "10 0 * * *", "end": "20 0 * * *", "desiredReplicas": "6"},
}
STAND_IN = Key("MetricReading.tidegate.dev", "default", "web.s0-cron.stand-in")


def left_to_the_cluster(cluster: Any) -> None:
    """HorizontalPodAutoscalers are decided on by the cluster's own controller."""
    cluster.core = AutoscalerCore(AutoscalerPolicy(left=frozenset([MADE.kind])))
    cluster.core.read_from(cluster.store)


def told(cluster: Any, metric: str) -> list[str]:
    """What external.metrics.k8s.io says to an autoscaler of the cluster."""
    index = MetricIndex()
    index.begin(cluster.store)
    selector = {"matchLabels": {"scaledobject.keda.sh/name": "web"}}
    try:
        return [one["value"] for one in external(index, "default", metric, selector)["items"]]
    except NotKnown:
        return []


def test_a_schedule_is_told_to_the_cluster_s_own_autoscaler(cluster: Any) -> None:
    """It owns the count above one; from none to one and back the ScaledObject decides."""
    left_to_the_cluster(cluster)
    cluster.deployment(0)
    scale(cluster, CRON, cooldownPeriod=60)
    cluster.advance(60)
    assert (told(cluster, "s0-cron"), cluster.replicas()) == (["0"], 0)
    cluster.advance(600)
    assert (told(cluster, "s0-cron"), cluster.replicas()) == (["6"], 1)
    cluster.deployment(6)  # as the cluster's controller does
    cluster.advance(300)
    assert cluster.replicas() == 6, "what is above one is not ours"
    cluster.advance(400)
    assert (told(cluster, "s0-cron"), cluster.replicas()) == (["0"], 0)


def test_a_fallback_is_told_to_the_cluster_s_own_autoscaler_and_is_no_sample(cluster: Any) -> None:
    left_to_the_cluster(cluster)
    cluster.deployment(2)
    sample(cluster, 30)
    scale(cluster, fallback={"failureThreshold": 2, "replicas": 5})
    cluster.advance(60)
    assert told(cluster, "s0-prometheus") == ["30"]
    sample(cluster, None)
    cluster.advance(30)
    assert told(cluster, "s0-prometheus") == [], "not before it failed so often"
    cluster.advance(90)
    assert told(cluster, "s0-prometheus") == ["50"], "five replicas at ten each"
    assert cluster.condition("Fallback", of=SCALED)[0] == "True"
    cluster.advance(600)
    assert told(cluster, "s0-prometheus") == ["50"], "it stands in for as long as nothing comes"
    assert cluster.condition("Fallback", of=SCALED)[0] == "True", "and is not taken for a sample"
    sample(cluster, 40)
    assert told(cluster, "s0-prometheus") == ["40"]
    cluster.advance(30)
    assert Key("MetricReading.tidegate.dev", "default", "web.s0-prometheus.stand-in") not in cluster.store.objects
    assert cluster.condition("Fallback", of=SCALED)[0] == "False"


def test_where_autoscalers_are_decided_on_here_nothing_stands_in(cluster: Any) -> None:
    cluster.deployment(0)
    scale(cluster, CRON)
    cluster.advance(700)
    assert STAND_IN not in cluster.store.objects
    assert cluster.replicas() == 6


def test_stand_ins_go_with_what_they_stand_in_for(cluster: Any) -> None:
    left_to_the_cluster(cluster)
    cluster.deployment(0)
    scale(cluster, CRON)
    cluster.advance(60)
    assert STAND_IN in cluster.store.objects
    sample(cluster, 0)
    scale(cluster, QUEUE)
    cluster.advance(60)
    assert STAND_IN not in cluster.store.objects
