"""What sources say, read as numbers or refused: also what no source should say."""

import json
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_autoscaler.sources import exposition
from inference_autoscaler.sources.answers import SourceFailed, lag, located, milli, vector
from inference_autoscaler.sources.pod_addresses import address_of
from inference_autoscaler.sources.timetable import LONGEST_REST_MS, Timetable
from kube import Object, from_manifest


def answered(*series: tuple[dict[str, str], Any], kind: str = "vector") -> bytes:
    result = [{"metric": labels, "value": [1.5, value]} for labels, value in series]
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}}).encode()


def one(content: bytes, **how: Any) -> int:
    return vector(content, "", **{"summed": False, "empty_is_zero": False, **how})[""]


@pytest.mark.parametrize(
    ("text", "value"),
    [("5", 5000), ("1.5e3", 1_500_000), ("0.0001", 1), ("-2", -2000), ("1e300", (1 << 63) - 1), (7, 7000)],
)
def test_numbers_become_thousandths_rounded_up(text: object, value: int) -> None:
    assert milli(text) == value


@pytest.mark.parametrize("text", ["NaN", "+Inf", "-Inf", "", "five", None, True, [1], "9" * 1000])
def test_what_is_no_number_is_no_value(text: object) -> None:
    with pytest.raises(SourceFailed):
        milli(text)


def test_a_query_has_to_give_one_value() -> None:
    assert one(answered(({}, "3"))) == 3000
    with pytest.raises(SourceFailed, match="finds 2 series"):
        one(answered(({}, "3"), ({}, "4")))
    assert one(answered(({}, "3"), ({}, "4")), summed=True) == 7000
    with pytest.raises(SourceFailed, match="no series"):
        one(answered())
    assert one(answered(), empty_is_zero=True) == 0
    with pytest.raises(SourceFailed, match="NaN"):
        one(answered(({}, "NaN")), empty_is_zero=True)


def test_a_matrix_is_no_value() -> None:
    with pytest.raises(SourceFailed, match="matrix"):
        one(answered(({}, "3"), kind="matrix"))


def test_a_refused_query_says_why() -> None:
    with pytest.raises(SourceFailed, match="parse error"):
        one(json.dumps({"status": "error", "error": "1:3: parse error"}).encode())


def test_of_several_pods_each_has_its_own_value_and_one_that_is_broken_none() -> None:
    found = vector(
        answered(({"pod": "a"}, "1"), ({"pod": "a"}, "2"), ({"pod": "b"}, "NaN"), ({}, "9")),
        "pod",
        summed=False,
        empty_is_zero=False,
    )
    assert found == {"a": 3000}


def _account(**consumer: Any) -> bytes:
    found = {"name": "C", "num_pending": 7, "num_ack_pending": 2, **consumer}
    stream = {"name": "S", "consumer_detail": [found], "cluster": {"leader": "n1"}}
    return json.dumps({"account_details": [{"name": "A", "stream_detail": [stream]}]}).encode()


def test_a_lag_is_what_waits_and_what_is_not_acknowledged() -> None:
    assert lag(_account(), "A", "S", "C") == {"": 9000}


def test_a_consumer_that_is_gone_has_no_lag() -> None:
    with pytest.raises(SourceFailed, match="no consumer D there; its leader is the server n1"):
        lag(_account(), "A", "S", "D")
    with pytest.raises(SourceFailed, match="no stream T"):
        lag(_account(), "A", "T", "C")
    with pytest.raises(SourceFailed):
        lag(_account(num_pending="many"), "A", "S", "C")


def test_a_number_is_found_in_a_document() -> None:
    content = json.dumps({"a": [{"b.c": 1, "d": "1500m"}, {"d": 2.5}]}).encode()
    assert located(content, "a.0.d") == {"": 1500}
    assert located(content, "a.1.d") == {"": 2500}
    for place in ("a.2.d", "a.0.x", "a", "a.0.d.e"):
        with pytest.raises(SourceFailed):
            located(content, place)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda part: (
        st.lists(part, max_size=3) | st.dictionaries(st.sampled_from(["status", "data", "result", "name"]), part)
    ),
    max_leaves=8,
)


@given(_JSON, st.sampled_from(["", "pod"]))
def test_whatever_a_source_answers_it_is_a_value_or_refused(document: Any, by: str) -> None:
    """No answer of any shape is more than a source that failed."""
    for content in (
        json.dumps(document).encode(),
        json.dumps({"status": "success", "data": document}).encode(),
        json.dumps({"status": "success", "data": {"resultType": "vector", "result": document}}).encode(),
        json.dumps({"account_details": document}).encode(),
        json.dumps({"account_details": [{"name": "A", "stream_detail": document}]}).encode(),
    ):
        for read in (
            partial(vector, content, by, summed=True, empty_is_zero=True),
            partial(lag, content, "A", "S", "C"),
            partial(located, content, "data.0.name"),
        ):
            with suppress(SourceFailed):
                assert all(isinstance(value, int) for value in read().values())


@given(st.binary(max_size=200))
def test_whatever_a_pod_tells_it_is_a_value_or_refused(content: bytes) -> None:
    with suppress(SourceFailed):
        exposition.value("q", None, exposition.look(b"q 1\n" + content, ["q"], (), 0))


TRITON = b"""# HELP nv_inference_pending_request_count x
# TYPE nv_inference_pending_request_count gauge
nv_inference_pending_request_count{model="a",version="1"} 4
nv_inference_pending_request_count{model="b",version="1"} 3
# TYPE nv_inference_count counter
nv_inference_count{model="a",version="1"} %d
# TYPE nv_inference_exec_count counter
nv_inference_exec_count{model="a",version="1"} %d
# TYPE nv_inference_request_duration_us counter
nv_inference_request_duration_us{model="a",version="1"} %d
# TYPE nv_inference_queue_duration_us counter
nv_inference_queue_duration_us{model="a",version="1"} %d
# TYPE nv_inference_compute_input_duration_us counter
nv_inference_compute_input_duration_us{model="a",version="1"} 0
# TYPE nv_inference_compute_infer_duration_us counter
nv_inference_compute_infer_duration_us{model="a",version="1"} %d
# TYPE nv_inference_compute_output_duration_us counter
nv_inference_compute_output_duration_us{model="a",version="1"} 0
# TYPE nv_gpu_utilization gauge
nv_gpu_utilization{gpu_uuid="x"} 0.5
nv_gpu_utilization{gpu_uuid="y"} 0.7
"""
BEFORE = TRITON % (100, 50, 8_000_000, 2_000_000, 6_000_000)
AFTER = TRITON % (300, 150, 28_000_000, 7_000_000, 26_000_000)


def told(metric: str, *contents: bytes, labels: tuple[tuple[str, str], ...] = ()) -> int | None:
    """What is told of ``metric`` by looks ten seconds apart."""
    before, found = None, None
    for number, content in enumerate(contents):
        now = exposition.look(content, exposition.names_of(metric), labels, number * 10_000)
        found, before = exposition.value(metric, before, now), now
    return found


def test_a_gauge_is_added_up_over_the_models_that_are_meant() -> None:
    assert told("nv_inference_pending_request_count", BEFORE) == 7000
    assert told("nv_inference_pending_request_count", BEFORE, labels=(("model", "b"),)) == 3000


def test_of_a_counter_its_rate_is_told_at_the_second_look() -> None:
    assert told("nv_inference_count", BEFORE) is None
    assert told("nv_inference_count", BEFORE, AFTER) == 20_000


def test_a_counter_that_began_anew_tells_no_rate() -> None:
    assert told("nv_inference_count", AFTER, BEFORE) is None


def test_how_busy_triton_is_and_what_it_serves_is_made_of_its_counters() -> None:
    """In 10 s 100 executions of 2 requests each took 20 s of requests' computing, so 10 s of instances: one was busy."""
    assert told("nv_inference_busy_instances", BEFORE, AFTER) == 1000
    assert told("nv_inference_queue_share", BEFORE, AFTER) == 250
    assert told("nv_inference_service_rate", BEFORE, AFTER) == 20_000


def test_where_nothing_was_served_a_rate_of_service_is_not_known() -> None:
    assert told("nv_inference_service_rate", BEFORE, BEFORE) is None
    assert told("nv_inference_queue_share", BEFORE, BEFORE) is None
    assert told("nv_inference_busy_instances", BEFORE, BEFORE) == 0


def test_the_load_of_gpus_is_their_mean_in_percent() -> None:
    assert told("duty_cycle_current", BEFORE) == 60_000


def test_a_metric_that_is_not_told_is_said_to_be_missing() -> None:
    for metric in ("other", "nv_inference_service_rate", "duty_cycle_current"):
        with pytest.raises(SourceFailed, match="it tells no"):
            told(metric, b"up 1\n")


def test_counters_of_histograms_are_counters() -> None:
    content = b'# TYPE wait histogram\nwait_bucket{le="+Inf"} 4\nwait_sum %d\nwait_count 4\n'
    assert told("wait_sum", content % 5, content % 25) == 2000


def test_sources_that_become_known_together_are_not_asked_at_one_moment() -> None:
    times = Timetable()
    for number in range(200):
        times.keep(f"s{number}", 15_000, 0, 1000)
    first = [len(times.due(now)) for now in range(0, 1001, 100)]
    assert sum(first) == 200 and max(first) < 60
    for number in range(200):
        times.answered(f"s{number}", 1000, failed=False)
    later = [len(times.due(now)) for now in range(1000, 31_000, 1000)]
    assert sum(later) == 200 and max(later) < 40


def test_a_source_that_fails_is_asked_less_often_and_soon_again_once_it_answers() -> None:
    times = Timetable()
    times.keep("s", 10_000, 0, 1)
    now, gaps = 0, []
    for _ in range(6):
        last = now
        while not times.due(now):
            now += 1000
        gaps.append(now - last)
        times.answered("s", now, failed=True)
    assert gaps[1] <= 20_000 < gaps[3] and max(gaps) <= LONGEST_REST_MS + 10_000
    while not times.due(now):
        now += 1000
    assert times.counts() == (1, 1)
    times.answered("s", now, failed=False)
    assert times.counts() == (1, 0)
    assert times.next_due() is not None and (times.next_due() or 0) - now <= 10_000


def test_a_source_is_not_asked_while_it_is_being_asked_nor_when_nobody_wants_it() -> None:
    times = Timetable()
    times.keep("s", 1000, 0, 1)
    assert times.due(0) == ["s"] and times.due(5000) == []
    times.drop("s")
    times.answered("s", 5000, failed=False)
    assert times.due(9000) == []


def _pod(**parts: Any) -> Object:
    metadata = {"name": "p", "annotations": parts.pop("annotations", {})}
    container = {"name": "c", **parts}
    status = {"podIP": "10.0.0.1"}
    spec = {"containers": [container]}
    return from_manifest({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status})


@pytest.mark.parametrize(
    ("pod", "url"),
    [
        (_pod(annotations={"prometheus.io/port": "9", "prometheus.io/path": "m"}), "http://10.0.0.1:9/m"),
        (_pod(annotations={"prometheus.kserve.io/port": "8082"}), "http://10.0.0.1:8082/metrics"),
        (
            _pod(ports=[{"name": "http", "containerPort": 1}, {"name": "metrics", "containerPort": 2}]),
            "http://10.0.0.1:2/metrics",
        ),
        (_pod(image="nvcr.io/nvidia/tritonserver:24.10-py3"), "http://10.0.0.1:8002/metrics"),
        (_pod(image="x", args=["/opt/tritonserver", "--metrics-port=7"]), "http://10.0.0.1:7/metrics"),
        (_pod(annotations={"prometheus.io/port": "x@evil"}), ""),
        (_pod(image="nginx"), ""),
    ],
)
def test_a_pod_says_where_it_is_asked(pod: Object, url: str) -> None:
    assert address_of(pod).url == url
