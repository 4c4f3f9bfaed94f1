"""HorizontalPodAutoscalers and ScaledObjects with a goal: their target is sized by it, or they say why it is not."""

from typing import Any

import pytest

from inference_autoscaler.domain.core import AutoscalerCore
from inference_autoscaler.domain.policy import AutoscalerPolicy
from kube import Key, rfc3339

GOAL, SLOTS = "tidegate.dev/target", "tidegate.dev/slots"
HPA, SCALED = "HorizontalPodAutoscaler.autoscaling", "ScaledObject.keda.sh"
MADE = Key(HPA, "default", "keda-hpa-web")
WAIT = {GOAL: "queue wait <= 1s"}


def external(name: str, per_replica: str) -> dict[str, Any]:
    target = {"type": "AverageValue", "averageValue": per_replica}
    return {"type": "External", "external": {"metric": {"name": name}, "target": target}}


def trigger(name: str, threshold: str) -> dict[str, Any]:
    return {"type": "prometheus", "name": name, "metadata": {"query": name, "threshold": threshold}}


LOADS = [external("rps", "10"), external("concurrency", "10")]
TRIGGERS = [trigger("concurrency", "10"), trigger("rps", "10")]


def horizontal(cluster: Any, annotations: dict[str, str] | None = None, **spec: Any) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    wanted = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 40, "metrics": LOADS, **spec}
    metadata = {"name": "web", "annotations": WAIT if annotations is None else annotations}
    cluster.put(
        {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": wanted}
    )


def scaled(cluster: Any, annotations: dict[str, str] | None = None, **spec: Any) -> None:
    wanted = {"scaleTargetRef": {"name": "web"}, "triggers": TRIGGERS, **spec}
    metadata = {"name": "web", "annotations": WAIT if annotations is None else annotations}
    cluster.put({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": metadata, "spec": wanted})


class Load:
    """Samples every four seconds, and pods that are ready after a minute."""

    def __init__(self, cluster: Any, names: tuple[str, str] = ("rps", "concurrency"), **labels: str) -> None:
        self.cluster, self.names, self.labels, self.pods = cluster, names, labels, dict[str, int]()

    def bear(self, load: float, seconds: int) -> None:
        for _ in range(seconds // 4):
            self.cluster.advance(4)
            self._live()
            for name in self.names:
                labels = {key.replace("_", "/"): value for key, value in self.labels.items()}
                self.cluster.sample(name, f"{round(load * 1000)}m", labels)

    def _live(self) -> None:
        now, wanted = self.cluster.now, self.cluster.replicas()
        while len(self.pods) < wanted:
            self.pods[f"p{now}-{len(self.pods)}"] = now
        while len(self.pods) > wanted:
            self.cluster.remove(Key("Pod", "default", self.pods.popitem()[0]))
        for name, made in self.pods.items():
            ready = str(made + 60_000 <= now)
            condition = {"type": "Ready", "status": ready, "lastTransitionTime": rfc3339(made + 60_000)}
            metadata = {"name": name, "creationTimestamp": rfc3339(made), "labels": {"app": "web"}}
            self.cluster.put(
                {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"conditions": [condition]}}
            )
        self.cluster.ready("web", sum(made + 60_000 <= now for made in self.pods.values()))


def of_trigger(cluster: Any) -> Load:
    return Load(cluster, ("s1-prometheus", "s0-prometheus"), **{"scaledobject.keda.sh_name": "web"})


def message(cluster: Any, kind: str, of: str = "SizedByGoal") -> str:
    listed = cluster.store.objects[Key(kind, "default", "web")].status["conditions"]
    return next(one["message"] for one in listed if one["type"] == of)


def test_a_horizontal_autoscaler_with_a_goal_is_sized_by_it(cluster: Any) -> None:
    cluster.deployment(1)
    horizontal(cluster)
    assert cluster.condition("SizedByGoal") == ("Unknown", "NoSamples")
    load = Load(cluster)
    load.bear(60, 400)
    assert 7 <= cluster.replicas() <= 10
    assert cluster.condition("SizedByGoal") == ("True", "SizedByGoal")
    assert cluster.condition("ScalingActive")[0] == "True"
    assert "queue wait ≤ 1000 ms" in cluster.decisions[-1].message or "starts in 60 s" in cluster.decisions[-1].message
    load.bear(5, 1200)
    assert cluster.replicas() <= 2


def test_a_scaled_object_with_a_goal_makes_no_autoscaler_and_sleeps(cluster: Any) -> None:
    cluster.deployment(1)
    scaled(cluster, annotations={})
    assert MADE in cluster.store.objects
    scaled(cluster)
    assert MADE not in cluster.store.objects
    load = of_trigger(cluster)
    load.bear(60, 400)
    assert 7 <= cluster.replicas() <= 10
    assert cluster.condition("Ready", of=SCALED)[0] == cluster.condition("Active", of=SCALED)[0] == "True"
    load.bear(0, 1300)
    assert cluster.replicas() == 0
    cluster.advance(10)
    assert cluster.core.deadline() is None, "who sleeps costs nothing"
    load.bear(5, 8)
    assert cluster.replicas() >= 1
    scaled(cluster, annotations={})
    assert MADE in cluster.store.objects


def test_the_load_of_a_part_of_a_service_is_that_of_the_service(cluster: Any) -> None:
    """An InferenceService that leaves its size to others, and an autoscaler of their own with a goal: the gateway's samples count."""
    cluster.serve(
        mode="Standard",
        more={"serving.kserve.io/autoscalerClass": "external"},
        scaleTarget=None,
        containerConcurrency=10,
    )
    horizontal(
        cluster, scaleTargetRef={"apiVersion": "apps/v1", "kind": "Deployment", "name": "m-predictor"}, metrics=None
    )
    described = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "name": "m"}
    cluster.ready("m-predictor")
    for _ in range(60):
        cluster.advance(2)
        for name in ("rps", "concurrency"):
            metric = {"name": name}
            spec = {"describedObject": described, "metric": metric, "value": "45", "timestamp": cluster.time()}
            cluster.put(
                {
                    "apiVersion": "tidegate.dev/v1",
                    "kind": "MetricReading",
                    "metadata": {"name": f"m-{name}"},
                    "spec": spec,
                }
            )
    assert cluster.replicas("m-predictor") >= 3


@pytest.mark.parametrize(
    ("spec", "annotations", "reason", "words"),
    [
        ({"metrics": None}, {}, "NotMeasured", SLOTS),
        ({"metrics": [LOADS[0]]}, {}, "NotMeasured", "rps and not concurrency"),
        ({}, {GOAL: "quickly"}, "InvalidGoal", "is no target"),
        ({}, {SLOTS: "many"}, "InvalidGoal", SLOTS),
        ({"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}}, {}, "FailedGetScale", "x"),
    ],
)
def test_a_goal_that_cannot_decide_says_why(
    cluster: Any, spec: dict[str, Any], annotations: dict[str, str], reason: str, words: str
) -> None:
    cluster.deployment(2)
    horizontal(cluster, {**WAIT, **annotations}, **spec)
    cluster.advance(60)
    assert cluster.condition("SizedByGoal") == ("False", reason)
    assert words in message(cluster, HPA)
    assert cluster.replicas() == 2


def test_a_service_that_sizes_itself_is_left_alone(cluster: Any) -> None:
    cluster.serve(mode="Standard", more=WAIT, scaleTarget=None)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "m-predictor"}
    horizontal(cluster, scaleTargetRef=target, minReplicas=5)
    cluster.advance(20)
    assert "InferenceService m sizes m-predictor itself" in message(cluster, HPA)
    assert cluster.replicas("m-predictor") == 1


def test_of_two_that_name_a_target_the_goal_yields_and_says_so(cluster: Any) -> None:
    cluster.deployment(1)
    cluster.autoscaler(least=3, name="plain")
    horizontal(cluster, minReplicas=6)
    cluster.advance(30)
    assert cluster.replicas() == 3
    assert "plain names the same target" in message(cluster, HPA)
    cluster.remove(Key(HPA, "default", "plain"))
    cluster.advance(4)
    assert cluster.replicas() == 6


def test_a_pause_of_a_scaled_object_holds(cluster: Any) -> None:
    cluster.deployment(3)
    scaled(cluster, {**WAIT, "autoscaling.keda.sh/paused-replicas": "2"})
    of_trigger(cluster).bear(60, 100)
    assert cluster.replicas() == 2
    assert cluster.condition("Paused", of=SCALED) == ("True", "ScaledObjectPaused")
    assert cluster.condition("Ready", of=SCALED)[0] == "True"


def test_a_restart_changes_nothing(make_cluster: type) -> None:
    sizes = []
    for restarts in (False, True):
        cluster: Any = make_cluster()
        cluster.deployment(1)
        horizontal(cluster)
        load, seen = Load(cluster), list[int]()
        for value in (60, 5, 70, 2, 2):
            load.bear(value, 60)
            if restarts:
                cluster.restart()
            seen.append(cluster.replicas())
        sizes.append(seen)
    assert sizes[0] == sizes[1]


def test_where_the_cluster_decides_on_autoscalers_a_goal_of_one_is_told_to_have_no_effect(cluster: Any) -> None:
    cluster.core = AutoscalerCore(AutoscalerPolicy(left=frozenset([HPA])))
    cluster.core.read_from(cluster.store)
    cluster.deployment(1)
    horizontal(cluster, minReplicas=5)
    scaled(cluster, scaleTargetRef={"name": "other"})
    cluster.advance(30)
    assert cluster.replicas() == 1
    assert cluster.condition("SizedByGoal") == ("False", "NotScaledHere")
    assert "put it on a ScaledObject" in message(cluster, HPA)
    assert [one["type"] for one in cluster.store.objects[Key(HPA, "default", "web")].status["conditions"]] == [
        "SizedByGoal"
    ]
