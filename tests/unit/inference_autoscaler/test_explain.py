"""Explanations of sizes: why this one, what starts, what has to pass before it shrinks; and asking changes nothing."""

from typing import Any

import orjson
import pytest
from tests.unit.inference_autoscaler.goals.test_autoscalers_with_a_goal import Load, horizontal
from tests.unit.inference_autoscaler.target.test_services_with_a_goal import Service

from inference_autoscaler.domain.core import AutoscalerCore
from inference_autoscaler.domain.policy import AutoscalerPolicy

HPA, SCALED = "HorizontalPodAutoscaler.autoscaling", "ScaledObject.keda.sh"
SERVICE = "InferenceService.serving.kserve.io"


def ask(cluster: Any, kind: str, name: str) -> tuple[str, str]:
    """The verdict, and all lines; nothing is decided or remembered by asking."""
    answer = cluster.core.query("explain", {"kind": kind, "namespace": "default", "name": name, "now": cluster.now})
    assert cluster.core.decide(cluster.now, frozenset()) == []
    assert cluster.core.remember_parts() == {}
    return answer["verdict"], "\n".join([answer.get("message", ""), *answer.get("lines", ())])


@pytest.mark.parametrize("mode", ["Serverless", "Standard"])
def test_a_service_with_a_goal_says_all_that_its_size_rests_on(cluster: Any, mode: str) -> None:
    service = Service(cluster, mode=mode)
    service.bear(25, 240)
    service.bear(90, 30, waiting=100)
    verdict, told = ask(cluster, SERVICE, "m")
    assert verdict == "Sized"
    for part in (
        "goal: queue wait ≤ 1000 ms, with 10 requests at a time and replica",
        "scatters of",
        "at most in 10 minutes",
        "start, and will serve by 2026-01-01T00:0",
    ):
        assert part in told
    service.bear(5, 200)
    assert "no fewer before 2026-01-01T00:1" in ask(cluster, SERVICE, "m")[1]


def test_a_service_without_samples_says_what_is_missing(cluster: Any) -> None:
    Service(cluster, mode="Standard")
    verdict, told = ask(cluster, SERVICE, "m")
    assert verdict == "NoSamples"
    assert "inference_gateway" in told


def test_a_service_without_a_goal_says_by_what_it_is_sized(cluster: Any) -> None:
    cluster.serve()
    cluster.ready()
    cluster.advance(60)
    cluster.put(
        {
            "apiVersion": "tidegate.dev/v1",
            "kind": "MetricReading",
            "metadata": {"name": "m"},
            "spec": {
                "describedObject": {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "name": "m"},
                "metric": {"name": "concurrency"},
                "timestamp": cluster.time(),
                "value": "38",
            },
        }
    )
    cluster.advance(2)
    verdict, told = ask(cluster, SERVICE, "m")
    assert verdict == "Sized"
    assert "m-predictor-00001 4: 38.00 concurrency over the window" in told


def test_an_autoscaler_says_what_asks_for_how_many_and_what_holds_it(cluster: Any) -> None:
    cluster.deployment(4)
    cluster.sample("queue", 70)
    cluster.autoscaler()
    cluster.advance(15)
    cluster.sample("queue", 20)
    cluster.advance(15)
    _, told = ask(cluster, HPA, "web")
    assert "Deployment web: 7 replicas wanted, 7 now, of which 0 serve; from 1 to 30" in told
    assert "external metric queue asks for 2" in told
    assert "ScaleDownStabilized" in told


def test_a_scaled_object_says_what_its_triggers_say_and_when_it_sleeps(cluster: Any) -> None:
    cluster.deployment(1)
    trigger = {"type": "prometheus", "metadata": {"query": "q", "threshold": "10"}}
    spec = {"scaleTargetRef": {"name": "web"}, "triggers": [trigger], "cooldownPeriod": 60}
    cluster.sample("s0-prometheus", 5, {"scaledobject.keda.sh/name": "web"})
    cluster.put({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "web"}, "spec": spec})
    assert ask(cluster, SCALED, "web")[0] == "Active"
    cluster.sample("s0-prometheus", 0, {"scaledobject.keda.sh/name": "web"})
    cluster.advance(30)
    verdict, told = ask(cluster, SCALED, "web")
    assert verdict == "NotActive"
    assert "trigger s0-prometheus: 0, 10 a replica, not active" in told
    assert "down to 0 after 2026-01-01T00:01:00Z" in told


def test_an_autoscaler_with_a_goal_is_explained_by_it(cluster: Any) -> None:
    cluster.deployment(1)
    horizontal(cluster)
    Load(cluster).bear(60, 40)
    verdict, told = ask(cluster, HPA, "web")
    assert verdict == "SizedByGoal"
    assert "goal: queue wait" in told
    assert "start, and will serve by" in told


def test_what_others_decide_is_said_to_be_theirs() -> None:
    core = AutoscalerCore(AutoscalerPolicy(left=frozenset([HPA])))
    assert core.query("explain", {"kind": HPA, "name": "web"})["verdict"] == "NotDecidedHere"


def test_a_policy_that_is_told_is_read_back_whole() -> None:
    """What a what-if works with is what the running service was told: whose objects it leaves to others, and its routes."""
    routes = {"by": "HTTPRoute", "gateway": "edge/front", "domain": "models.example"}
    policy = AutoscalerPolicy.of({"stable-window": "30s"}, left=[HPA, SCALED], routes=routes)
    told = orjson.loads(orjson.dumps(AutoscalerCore(policy).query("settings", {})))
    assert AutoscalerPolicy.told(told) == policy
    assert AutoscalerPolicy.told({}) == AutoscalerPolicy()
