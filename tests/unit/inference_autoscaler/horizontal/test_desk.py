"""HorizontalPodAutoscalers over time: rounds, windows, rates, restarts."""

from typing import Any

import pytest

from inference_autoscaler.domain.core import AutoscalerCore
from inference_autoscaler.domain.horizontal.spec import AUTOSCALER
from inference_autoscaler.domain.policy import AutoscalerPolicy
from kube import Decision, Key, Outcome, Verb

AT_ONCE = {"scaleDown": {"stabilizationWindowSeconds": 0}}


def test_an_autoscaler_is_looked_at_when_it_is_new_and_then_in_rounds(cluster: Any) -> None:
    cluster.deployment(4)
    cluster.sample("queue", 70)
    cluster.autoscaler()
    assert cluster.replicas() == 7
    cluster.sample("queue", 120)
    cluster.advance(14)
    assert cluster.replicas() == 7, "no sample starts a look"
    cluster.advance(1)
    assert cluster.replicas() == 12


def test_shrinking_waits_for_five_minutes_after_the_last_higher_answer(cluster: Any) -> None:
    cluster.deployment(6)
    cluster.sample("queue", 60)
    cluster.autoscaler()
    cluster.advance(120)
    cluster.sample("queue", 20)
    cluster.advance(300)
    assert cluster.replicas() == 6
    cluster.advance(15)
    assert cluster.replicas() == 2


def test_a_restart_neither_shortens_nor_skips_a_window(cluster: Any) -> None:
    cluster.deployment(6)
    cluster.sample("queue", 60)
    cluster.autoscaler()
    cluster.advance(120)
    cluster.sample("queue", 20)
    cluster.advance(100)
    cluster.restart()
    cluster.advance(200)
    assert cluster.replicas() == 6
    cluster.advance(15)
    assert cluster.replicas() == 2


def test_a_restart_between_rounds_looks_at_nothing_before_the_next_one(cluster: Any) -> None:
    cluster.deployment(4)
    cluster.sample("queue", 40)
    cluster.autoscaler()
    cluster.advance(20)
    cluster.sample("queue", 70)
    cluster.restart()
    assert cluster.replicas() == 4
    cluster.advance(10)
    assert cluster.replicas() == 7


def test_a_rate_counts_what_was_added_in_its_period(cluster: Any) -> None:
    behavior = {"scaleUp": {"policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}]}}
    cluster.deployment(10)
    cluster.sample("queue", 500)
    cluster.autoscaler(behavior=behavior)
    assert cluster.replicas() == 14
    cluster.advance(45)
    assert cluster.replicas() == 14
    assert cluster.condition("ScalingLimited") == ("True", "ScaleUpLimit")
    cluster.advance(15)
    assert cluster.replicas() == 18


def test_a_policy_can_forbid_a_direction(cluster: Any) -> None:
    cluster.deployment(10)
    cluster.sample("queue", 10)
    cluster.autoscaler(behavior={"scaleDown": {"stabilizationWindowSeconds": 0, "selectPolicy": "Disabled"}})
    cluster.advance(60)
    assert cluster.replicas() == 10


def test_a_sample_that_is_withdrawn_holds_the_size_and_says_so(cluster: Any) -> None:
    cluster.deployment(8)
    cluster.sample("queue", 80)
    cluster.autoscaler(behavior=AT_ONCE)
    cluster.sample("queue", None)
    cluster.advance(60)
    assert cluster.replicas() == 8
    assert cluster.condition("ScalingActive") == ("False", "FailedGetExternalMetric")
    cluster.sample("queue", 0)
    cluster.advance(15)
    assert cluster.replicas() == 1


def test_a_zero_of_its_own_ends_and_a_user_s_stays(cluster: Any) -> None:
    cluster.deployment(2)
    cluster.sample("queue", 0)
    cluster.autoscaler(least=0, behavior=AT_ONCE)
    assert cluster.replicas() == 0
    assert cluster.condition("ScaledToZero") == ("True", "ScaledToZero")
    cluster.sample("queue", 40)
    cluster.advance(15)
    assert cluster.replicas() == 4
    assert cluster.condition("ScaledToZero") == ("False", "NotScaledToZero")
    cluster.deployment(0)
    cluster.advance(60)
    assert cluster.replicas() == 0
    assert cluster.condition("ScalingActive") == ("False", "ScalingDisabled")


def test_the_bounds_hold_without_any_sample(cluster: Any) -> None:
    cluster.deployment(9)
    cluster.autoscaler(most=5)
    assert cluster.replicas() == 5
    cluster.autoscaler(least=6, most=7)
    assert cluster.replicas() == 6


def test_of_two_on_the_same_pods_none_acts_until_one_is_gone(cluster: Any) -> None:
    cluster.deployment(4)
    cluster.sample("queue", 40)
    cluster.autoscaler()
    cluster.autoscaler(name="other")
    cluster.sample("queue", 70)
    cluster.advance(15)
    assert cluster.replicas() == 4
    assert (
        cluster.condition("ScalingActive")
        == cluster.condition("ScalingActive", "other")
        == ("False", "AmbiguousSelector")
    )
    cluster.remove(Key("HorizontalPodAutoscaler.autoscaling", "default", "other"))
    cluster.advance(15)
    assert cluster.replicas() == 7


def test_a_target_that_is_not_there_is_told(cluster: Any) -> None:
    cluster.autoscaler()
    assert cluster.condition("AbleToScale") == ("False", "FailedGetScale")


def test_a_change_of_size_says_how_many_and_why(cluster: Any) -> None:
    cluster.deployment(4)
    cluster.sample("queue", 70)
    cluster.autoscaler()
    (scaled,) = [one for one in cluster.decisions if one.name == "ReplicasScaled"]
    assert (scaled.reason, scaled.message) == (
        "SuccessfulRescale",
        "New size: 7; reason: external metric queue above target",
    )
    assert [(one.verb, one.key.kind) for one in scaled.mutations] == [
        (Verb.PATCH, "Deployment.apps"),
        (Verb.STATUS, "HorizontalPodAutoscaler.autoscaling"),
    ]


def test_what_was_refused_is_not_counted_and_decided_again(cluster: Any) -> None:
    """The Deployment changed on the way: the four pods of the policy are still to be had."""
    cluster.deployment(10)
    cluster.sample("queue", 100)
    cluster.autoscaler(behavior={"scaleUp": {"policies": [{"type": "Pods", "value": 4, "periodSeconds": 300}]}})
    cluster.sample("queue", 500)
    cluster.now += 15_000
    (lost,) = cluster.core.decide(cluster.now, frozenset())
    assert isinstance(lost, Decision) and "New size: 14" in lost.message
    cluster.core.assume("1", lost)
    cluster.core.settle(Outcome("1", lost.name, lost.subject, False, {"": "stale"}))
    assert cluster.core.decide(cluster.now, frozenset()) == [], "that it is to be looked at again is written down first"
    assert cluster.core.remember_parts() and cluster.core.deadline() == cluster.now
    (again,) = cluster.core.decide(cluster.now, frozenset())
    assert "New size: 14" in again.message


@pytest.mark.parametrize("policy", [AutoscalerPolicy(acts=False), AutoscalerPolicy(left=frozenset([AUTOSCALER]))])
def test_where_the_cluster_has_a_controller_of_its_own_nothing_is_decided(
    cluster: Any, policy: AutoscalerPolicy
) -> None:
    cluster.core = AutoscalerCore(policy)
    cluster.core.read_from(cluster.store)
    cluster.deployment(4)
    cluster.sample("queue", 70)
    cluster.autoscaler()
    cluster.advance(60)
    assert cluster.decisions == [] and cluster.core.deadline() is None and not cluster.memory


def test_explain_tells_what_each_metric_asks_for(cluster: Any) -> None:
    cluster.deployment(4)
    cluster.sample("queue", 60)
    cluster.autoscaler()
    cluster.sample("queue", 70)
    answer = cluster.core.query("explain", {"namespace": "default", "name": "web"})
    assert answer["metrics"] == [{"metric": "external metric queue", "asksFor": 7}]
    assert (answer["replicas"], answer["message"]) == (7, "external metric queue above target")


def test_an_object_metric_that_several_measure_is_their_sum(cluster: Any) -> None:
    """Two gateways of one service; of two that are told apart by other labels the first counts, as ever."""
    service = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "name": "m"}
    target = {"type": "AverageValue", "averageValue": "10"}
    cluster.deployment(1)
    cluster.autoscaler(
        metrics=[
            {"type": "Object", "object": {"describedObject": service, "metric": {"name": "rps"}, "target": target}}
        ]
    )
    for source, value in (("a", 25), ("b", 24)):
        metadata = {"name": f"m.rps.{source}", "labels": {"tidegate.dev/source": source}}
        spec = {"describedObject": service, "metric": {"name": "rps"}, "timestamp": cluster.time(), "value": str(value)}
        cluster.put({"apiVersion": "tidegate.dev/v1", "kind": "MetricReading", "metadata": metadata, "spec": spec})
    cluster.advance(30)
    assert cluster.replicas() == 5
