"""Faults around the autoscaler: it is killed, the time is set, sources say nonsense. Nothing flaps, nothing is lost."""

from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kube import Event, Key, Manifest, Outcome

HOUR = 3_600_000
MODEL = Key("Deployment.apps", "default", "m-predictor-00001-deployment")
LABELS = {"scaledobject.keda.sh/name": "web"}
AUTOSCALER = Key("HorizontalPodAutoscaler.autoscaling", "default", "web")


def serve(cluster: Any, **predictor: Any) -> None:
    containers = [{"name": "kserve-container", "image": "model:1"}]
    cluster.put(
        {
            "apiVersion": "serving.kserve.io/v1beta1",
            "kind": "InferenceService",
            "metadata": {"name": "m", "annotations": {"autoscaling.knative.dev/target-utilization-percentage": "100"}},
            "spec": {"predictor": {"scaleTarget": 10, "containers": containers, **predictor}},
        }
    )


def load(cluster: Any, value: Any, at: str = "") -> None:
    described = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "name": "m"}
    spec: Manifest = {
        "describedObject": described,
        "metric": {"name": "concurrency"},
        "timestamp": at or cluster.time(),
    }
    spec |= {} if value is None else {"value": value}
    cluster.put({"apiVersion": "tidegate.dev/v1", "kind": "MetricReading", "metadata": {"name": "m"}, "spec": spec})


def ready(cluster: Any) -> None:
    found = cluster.store.objects[MODEL]
    there = found.spec["replicas"]
    cluster.core.fold(
        [cluster.store.put(found.changed(status={"replicas": there, "availableReplicas": there}))], cluster.now
    )
    cluster.look()


def model_size(cluster: Any) -> int:
    return int(cluster.store.objects[MODEL].spec["replicas"])


def borne(cluster: Any, value: Any, seconds: int) -> None:
    """A source that tells of the load every two seconds, and pods that serve at once."""
    for _ in range(0, seconds, 2):
        cluster.advance(2)
        load(cluster, value)
        ready(cluster)


def test_one_that_is_killed_before_it_hears_of_its_scale_up_neither_repeats_nor_forgets_it(cluster: Any) -> None:
    cluster.deployment(4)
    cluster.sample("queue", 40)
    cluster.autoscaler(behavior={"scaleUp": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}]}})
    cluster.sample("queue", 90)
    cluster.now += 15_000
    (made,) = cluster.core.decide(cluster.now, frozenset())
    assert "New size: 6" in made.message
    cluster.memory |= cluster.core.remember_parts()
    successor = type(cluster)()
    successor.store, successor.memory, successor.now = cluster.store, cluster.memory, cluster.now + 20_000
    successor.core.restore_parts(successor.memory)
    successor.core.read_from(successor.store)
    successor.core.fold([Event(None, item) for item in successor.store.objects.values()], cluster.now)
    successor.core.assume("1", made)
    assert successor.core.decide(successor.now, frozenset([AUTOSCALER])) == [], "its predecessor's is on its way"
    successor.memory |= successor.core.remember_parts()
    successor._apply(made)
    successor.core.settle(Outcome("1", made.name, made.subject, True))
    successor.look()
    assert successor.replicas() == 6, "what was added counts in the period of the policy"
    successor.advance(60)
    assert successor.replicas() == 8


@pytest.mark.parametrize("hours", [-7, -1, 2, 9])
def test_a_size_stays_whatever_the_time_is_set_to(cluster: Any, hours: int) -> None:
    """The load dips just when the time is set; the window against flapping holds all the same."""
    cluster.deployment(6)
    cluster.sample("queue", 60)
    cluster.autoscaler()
    cluster.advance(120)
    cluster.now += hours * HOUR
    cluster.sample("queue", 20)
    cluster.look()
    cluster.advance(30)
    cluster.sample("queue", 60)
    cluster.advance(600)
    assert cluster.replicas() == 6
    assert [one.name for one in cluster.decisions if one.name == "ReplicasScaled"] == []
    cluster.sample("queue", 20)
    cluster.advance(330)
    assert cluster.replicas() == 2, "and it goes on"


@pytest.mark.parametrize("hours", [-7, 9])
def test_rates_go_on_when_the_time_is_set(cluster: Any, hours: int) -> None:
    behavior = {"scaleUp": {"policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}]}}
    cluster.deployment(10)
    cluster.sample("queue", 200)
    cluster.autoscaler(behavior=behavior)
    assert cluster.replicas() == 14
    cluster.now += hours * HOUR
    cluster.look()
    cluster.advance(90)
    assert cluster.replicas() == 18 or cluster.replicas() == 20


@pytest.mark.parametrize("hours", [-7, 9])
def test_a_scaled_object_is_polled_on_when_the_time_is_set(cluster: Any, hours: int) -> None:
    trigger: Manifest = {"type": "prometheus", "metadata": {"query": "q", "threshold": "10"}}
    spec: Manifest = {"scaleTargetRef": {"name": "web"}, "triggers": [trigger], "cooldownPeriod": 300}
    cluster.deployment(1)
    cluster.sample("s0-prometheus", 5, LABELS)
    cluster.put({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "web"}, "spec": spec})
    cluster.advance(60)
    cluster.now += hours * HOUR
    cluster.sample("s0-prometheus", 0, LABELS)
    cluster.advance(240)
    assert cluster.replicas() == 1, "the cooldown is neither over nor forgotten"
    cluster.advance(120)
    assert cluster.replicas() == 0
    cluster.sample("s0-prometheus", 5, LABELS)
    cluster.advance(30)
    assert cluster.replicas() == 1


@pytest.mark.parametrize("hours", [-7, 9])
def test_a_revision_follows_its_load_when_the_time_is_set(cluster: Any, hours: int) -> None:
    serve(cluster)
    ready(cluster)
    borne(cluster, 28, 70)
    assert model_size(cluster) == 3
    cluster.now += hours * HOUR
    borne(cluster, 28, 70)
    assert model_size(cluster) == 3
    borne(cluster, 48, 90)
    assert model_size(cluster) == 5


def test_a_sample_of_times_to_come_does_not_silence_those_after_it(cluster: Any) -> None:
    serve(cluster)
    ready(cluster)
    cluster.advance(10)
    load(cluster, 8, at="2031-01-01T00:00:00Z")
    borne(cluster, 38, 90)
    assert model_size(cluster) == 4


NONSENSE = ["NaN", "", "many", "12 req/s", "1e30", "-1e30", True, [], {}, "5x", "١٢", 1e300]


@pytest.mark.parametrize("value", NONSENSE)
def test_a_sample_that_makes_no_sense_is_none(cluster: Any, value: Any) -> None:
    cluster.deployment(8)
    cluster.sample("queue", 80)
    cluster.autoscaler(behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    cluster.sample("queue", value)
    cluster.advance(60)
    assert cluster.replicas() == 8
    assert cluster.condition("ScalingActive") == ("False", "FailedGetExternalMetric")


@pytest.mark.parametrize("value", [*NONSENSE, "-5"])
def test_a_load_that_makes_no_sense_moves_no_revision(cluster: Any, value: Any) -> None:
    serve(cluster)
    ready(cluster)
    borne(cluster, 28, 70)
    borne(cluster, value, 70)
    assert model_size(cluster) == 3


@given(st.lists(st.one_of(st.sampled_from([*NONSENSE, None]), st.integers(0, 100)), max_size=12))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nonsense_among_samples_never_lets_a_size_go_down(make_cluster: Any, values: list[Any]) -> None:
    """A load that stays, told by a source that is out of its mind now and then: the size never goes below what it needs."""
    cluster = make_cluster()
    cluster.deployment(8)
    cluster.sample("queue", 80)
    cluster.autoscaler(most=30)
    for value in values:
        cluster.sample("queue", value if not isinstance(value, int) or isinstance(value, bool) else 80)
        cluster.advance(15)
        assert cluster.replicas() == 8


def test_a_negative_metric_asks_for_the_least(cluster: Any) -> None:
    """One that may be negative: the difference of two, for instance."""
    target = {"type": "Value", "value": "10"}
    metrics = [{"type": "External", "external": {"metric": {"name": "queue"}, "target": target}}]
    cluster.deployment(8)
    cluster.sample("queue", -70)
    cluster.autoscaler(least=2, metrics=metrics, behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    metadata = {"name": "p", "labels": {"app": "web"}}
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    cluster.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}, "status": status})
    cluster.advance(30)
    assert cluster.replicas() == 2


def test_what_an_older_version_remembered_in_one_piece_is_learnt_anew(cluster: Any) -> None:
    cluster.deployment(4)
    cluster.sample("queue", 60)
    cluster.memory = {"": b'{"at": 1, "horizontal": {}}'}
    cluster.restart()
    cluster.autoscaler()
    assert cluster.replicas() == 6


def test_what_an_operator_chose_can_be_told_in_an_answer(cluster: Any) -> None:
    told = orjson.loads(orjson.dumps(cluster.core.query("settings", {})))
    assert told["acts"] is True and told["left"] == []
