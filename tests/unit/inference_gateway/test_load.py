"""From the proxy's figures to what services bore."""

from typing import Any

from inference_gateway.domain.load import Counts, Meter, read_statistics
from inference_gateway.domain.readings import Said, Sample, answer_samples, load_samples, reading, source_of
from inference_gateway.domain.serving.service import read
from kube import Key

KEY = Key("InferenceService.serving.kserve.io", "team", "iris")
POOL = ("team", "iris-1")


def test_figures_of_both_protocols_are_added_up_by_pool() -> None:
    """Others are left out."""
    told = {
        "stats": [
            {"name": "cluster.team_iris-1.upstream_rq_active", "value": 2},
            {"name": "cluster.team_iris-1.upstream_rq_pending_active", "value": 3},
            {"name": "cluster.team_iris-1_grpc.upstream_rq_active", "value": 4},
            {"name": "cluster.team_iris-1.upstream_rq_total", "value": 10},
            {"name": "cluster.team_iris-1_grpc.upstream_rq_completed", "value": 7},
            {"name": "cluster.team_iris-1.upstream_rq_5xx", "value": 1},
            {"name": "cluster.hold.upstream_rq_total", "value": 99},
            {
                "histograms": [
                    {
                        "name": "cluster.team_iris-1.upstream_rq_time",
                        "buckets": [{"upper_bound": 5, "cumulative": 3}, {"upper_bound": 10, "cumulative": 6}],
                    }
                ]
            },
        ]
    }
    assert read_statistics(told) == {POOL: Counts(active=9, sent=10, answered=7, failed=1, within={5: 3, 10: 6})}


def test_concurrency_is_an_average_over_time_and_what_waits_is_part_of_it() -> None:
    """Half of the time four under way and one waiting, half of it none."""
    meter = Meter(since=0)
    meter.look(1000, {KEY: ({POOL: Counts(active=4)}, 1)})
    meter.look(2000, {KEY: ({POOL: Counts(active=0)}, 0)})
    assert meter.read(2000)[KEY][0] == 2500


def test_a_request_that_waited_counts_once() -> None:
    """When it comes, and not again when it is sent."""
    meter = Meter(since=0)
    meter.look(500, {KEY: ({POOL: Counts()}, 0)})
    meter.look(1000, {KEY: ({POOL: Counts()}, 6)})
    assert meter.read(1000)[KEY][1] == 6000
    meter.look(2000, {KEY: ({POOL: Counts(sent=6)}, 0)})
    assert meter.read(2000)[KEY][1] == 0
    meter.look(3000, {KEY: ({POOL: Counts(sent=10)}, 0)})
    assert meter.read(3000)[KEY][1] == 4000


def test_a_proxy_that_began_anew_counts_from_zero_and_an_old_one_is_no_burst() -> None:
    """What was before the first look is nobody's load of now."""
    meter = Meter(since=0)
    meter.look(1000, {KEY: ({POOL: Counts(sent=5000)}, 0)})
    assert meter.read(1000)[KEY][1] == 0
    meter.look(2000, {KEY: ({POOL: Counts(sent=3)}, 0)})
    assert meter.read(2000)[KEY][1] == 3000


def test_a_load_is_said_when_it_changes_and_again_after_a_while() -> None:
    """Both of its figures together: whoever goes by them takes them for the same time."""
    said, samples = Said(), load_samples(1000, 2000)
    assert said.load_news(KEY, samples, 0, repeat=True) == samples
    said.note(KEY, samples, 0)
    assert said.load_news(KEY, samples, 2000, repeat=True) == []
    assert said.load_news(KEY, samples, 4000, repeat=True) == samples
    assert said.load_news(KEY, samples, 4000, repeat=False) == []
    assert said.load_news(KEY, load_samples(1000, 2500), 2000, repeat=False) == load_samples(1000, 2500)
    assert not said.is_quiet(KEY)
    said.forget([])
    assert said.is_quiet(KEY) and said.last == {}


def test_what_was_silent_is_said_to_have_been_nothing_before_it_is_said_to_be_something() -> None:
    """A sample is of the time since the one before: a burst after an hour would else be taken for an hour of it."""
    said = Said()
    said.note(KEY, load_samples(0, 0), 10_000)
    assert said.has_been_silent(KEY, 3_600_000)
    assert not said.has_been_silent(KEY, 10_000)
    said.note(KEY, load_samples(0, 0), 3_600_000)
    assert not said.has_been_silent(KEY, 3_600_000)


def test_what_revisions_answered_is_said_while_there_are_several(make_service: Any) -> None:
    """As counts that grow, in the words that rollouts go by."""
    one, two = read(make_service("iris", {"iris-1": 100})), read(make_service("iris", {"iris-1": 90, "iris-2": 10}))
    assert one is not None and two is not None
    counts = {POOL: Counts(answered=7, failed=1, within={100: 6})}
    assert answer_samples(one, counts) == []
    found = answer_samples(two, counts)
    assert Sample("revision_requests_total", 7000, (("revision", "iris-1"),)) in found
    assert Sample("revision_errors_total", 1000, (("revision", "iris-1"),)) in found
    assert Sample("revision_latency_bucket", 6000, (("revision", "iris-1"), ("le", "100"))) in found
    assert len({sample.key(KEY) for sample in found}) == len(found)


def test_a_reading_is_of_its_service_and_goes_with_it(make_service: Any) -> None:
    """In the words of MetricReading."""
    service = read(make_service("iris"))
    assert service is not None
    made = reading(service, Sample("rps", 1500), 0)
    assert made["metadata"]["name"] == "iris.rps.gateway"
    assert made["metadata"]["ownerReferences"][0]["uid"] == service.uid
    assert made["spec"]["value"] == "1500m" and made["spec"]["timestamp"].startswith("1970-01-01T00:00:00")


def test_several_gateways_say_their_own(make_service: Any) -> None:
    """A sample carries its source, by its name and by a label."""
    service = read(make_service("iris"))
    assert service is not None
    one, other = (reading(service, Sample("rps", 1500), 0, source_of(holder)) for holder in ("only", "gateway-7f-x2"))
    assert one["metadata"]["labels"] == {"tidegate.dev/source": "gateway"}
    assert other["metadata"]["name"] == "iris.rps.gateway-7f-x2"
    assert other["metadata"]["labels"] == {"tidegate.dev/source": "gateway-7f-x2"}
