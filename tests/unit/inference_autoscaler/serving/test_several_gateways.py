"""The load of a service that several gateways carry: what they say adds up, as long as they are there."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from inference_autoscaler.domain.metrics.reading import SOURCE_LABEL
from inference_autoscaler.domain.metrics.readings import GONE_MS, Readings, Total
from kube import Event, Key, from_manifest, rfc3339

SERIES = ("default", "InferenceService.serving.kserve.io", "m", "concurrency")
READING = "MetricReading.tidegate.dev"


def sample(source: str, value: Any, time: str) -> dict[str, Any]:
    described = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "name": "m"}
    spec = {"describedObject": described, "metric": {"name": "concurrency"}, "timestamp": time}
    if value is not None:
        spec["value"] = value
    metadata = {"name": f"m.concurrency.{source}", "namespace": "default", "labels": {SOURCE_LABEL: source}}
    return {"apiVersion": "tidegate.dev/v1", "kind": "MetricReading", "metadata": metadata, "spec": spec}


def say(cluster: Any, **values: Any) -> None:
    for source, value in values.items():
        cluster.put(sample(source, value, cluster.time()))


def size(cluster: Any) -> int:
    return int(cluster.replicas("m-predictor-00001-deployment"))


def begin(cluster: Any) -> None:
    cluster.serve(scaleTarget=10)
    cluster.ready()
    cluster.advance(60)


def bear(cluster: Any) -> None:
    for _ in range(40):
        cluster.advance(4)
        say(cluster, a=20, b=18)
        cluster.ready()


def test_loads_of_two_gateways_are_summed(cluster: Any) -> None:
    begin(cluster)
    bear(cluster)
    assert size(cluster) == 4


def test_a_gateway_that_falls_silent_counts_as_it_was_and_then_no_more(cluster: Any) -> None:
    begin(cluster)
    bear(cluster)
    for _ in range(GONE_MS // 4000 - 1):
        cluster.advance(4)
        say(cluster, a=20)
        cluster.ready()
        assert size(cluster) == 4, "who is silent is not idle"
    for _ in range(30):
        cluster.advance(4)
        say(cluster, a=20)
    assert size(cluster) == 2


def test_all_silent_is_unknown_and_holds_the_size(cluster: Any) -> None:
    begin(cluster)
    bear(cluster)
    cluster.advance(3600)
    assert size(cluster) == 4


def test_who_says_that_he_does_not_know_makes_the_whole_unknown(cluster: Any) -> None:
    begin(cluster)
    bear(cluster)
    say(cluster, b=None)
    for _ in range(10):
        cluster.advance(4)
        say(cluster, a=2)
    assert size(cluster) == 4


def test_a_gateway_whose_sample_is_taken_back_counts_no_more_at_once(cluster: Any) -> None:
    begin(cluster)
    bear(cluster)
    cluster.remove(Key(READING, "default", "m.concurrency.b"))
    for _ in range(20):
        cluster.advance(4)
        say(cluster, a=20)
    assert size(cluster) == 2


def test_any_of_them_wakes_a_service(cluster: Any) -> None:
    cluster.serve(minReplicas=0, more={"autoscaling.knative.dev/initial-scale": "0"})
    cluster.advance(10)
    say(cluster, a=0, b=15)
    cluster.advance(2)
    assert size(cluster) >= 1


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.integers(0, 200)), max_size=20))
def test_the_total_is_that_of_the_last_words_of_those_that_are_there(words: list[tuple[str, int, int]]) -> None:
    readings, last = Readings(), dict[str, tuple[int, int]]()
    known: dict[str, Any] = {}
    for source, value, second in words:
        new = from_manifest(sample(source, value, rfc3339(second * 1000)), uid=source, revision=1)
        readings.fold(Event(known.get(source), new))
        known[source], last[source] = new, (second * 1000, value)
        newest = max(at for at, _ in last.values())
        there = sum(amount for at, amount in last.values() if at > newest - GONE_MS)
        assert readings.total(SERIES, None, 10**9) == Total(newest, there * 1000)
