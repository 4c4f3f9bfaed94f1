"""The queue that autoscalers are compared on, and the replay around it."""

import heapq

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from tests.bench.autoscaling.own import ByGoal
from tests.bench.autoscaling.queue_model import Queue, Requests, Seen, offered
from tests.bench.autoscaling.replay import Fleet, Replicas, replay
from tests.bench.autoscaling.rivals import Horizontal70, Keda, Knative
from tests.bench.autoscaling.traces import superposed

tenths = some.integers(1, 60).map(lambda amount: amount / 10)


def plain(requests: Requests, slots: list[int]) -> list[float]:
    """When each begins, one event after the other: ``slots`` are there for a second each, the last for ever."""
    begin, waiting, ends = list[float](), 0, list[float]()
    moments = sorted({*requests.arrive.tolist(), *map(float, range(len(slots)))})
    while waiting < len(requests.arrive):
        now = moments.pop(0)
        there = slots[min(int(now), len(slots) - 1)]
        while ends and ends[0] <= now:
            heapq.heappop(ends)
        while waiting < len(requests.arrive) and requests.arrive[waiting] <= now and len(ends) < there:
            begin.append(now)
            heapq.heappush(ends, now + float(requests.serve[waiting]))
            moments = sorted({*moments, now + float(requests.serve[waiting])})
            waiting += 1
    return begin


@settings(max_examples=60, deadline=None)
@given(some.lists(some.tuples(tenths, tenths), min_size=1, max_size=25), some.lists(some.integers(0, 4), max_size=7))
def test_requests_begin_when_a_plain_simulation_says(given_: list[tuple[float, float]], slots: list[int]) -> None:
    arrive, serve = np.array(sorted(at for at, _ in given_)), np.array([length for _, length in given_])
    requests, slots = Requests(arrive, serve), [*slots, 2]
    queue = Queue(requests)
    for second, there in enumerate(slots, start=1):
        queue.advance(second, there)
    waited = queue.finish(slots[-1])
    assert waited == pytest.approx(np.array(plain(requests, slots)) - arrive, abs=1e-9)


def test_the_load_offered_is_what_endless_slots_would_be_busy_with() -> None:
    requests = Requests(np.array([0.5, 1.0, 1.0]), np.array([1.0, 2.0, 0.25]))
    assert offered(requests)[:4].tolist() == pytest.approx([0.5, 1.75, 1.0, 0.0])
    queue = Queue(requests)
    assert [queue.advance(second, 100).busy for second in (1, 2, 3)] == pytest.approx([0.5, 1.75, 1.0])


def test_replicas_serve_once_they_have_started_and_the_youngest_goes_first() -> None:
    replicas = Replicas(start=60, first=2)
    replicas.become(4, now=10)
    replicas.become(5, now=20)
    replicas.pass_time(70)
    assert (replicas.ready, replicas.made) == (4, [20])
    replicas.become(3, now=71)
    assert (replicas.ready, replicas.made) == (3, [])


def test_copies_of_a_trace_are_as_far_apart_as_they_should_be_and_differ_by_seed() -> None:
    one = Requests(np.array([0.0, 10.0]), np.array([1.0, 2.0]))
    first = superposed(one, 0)
    assert first.arrive[:10] == pytest.approx(np.arange(10) * 0.37)
    assert first.serve.sum() == 30.0
    assert superposed(one, 1).arrive.tolist() != superposed(one, 2).arrive.tolist()


@pytest.mark.parametrize("scaler", [Horizontal70(), Knative(), Keda(), ByGoal(60)])
def test_each_follows_a_load_up_and_the_replay_counts_what_that_takes(scaler: Horizontal70) -> None:
    arrive = np.arange(0, 900, 1 / 64)
    found = replay(Requests(arrive, np.full(len(arrive), 1.0)), scaler, start=60)
    assert found.wanted[0] == 1
    assert 5 <= found.wanted[-1] <= 12
    assert found.replica_hours == pytest.approx(sum(found.wanted) / 3600)
    assert found.late_percent == 0.0


def test_knative_s_panic_takes_nothing_away() -> None:
    scaler, wanted = Knative(), 1
    for now in range(1, 121):
        seen = Seen(64.0 if now < 8 else 0.0, 0.0, 0)
        wanted = scaler.look(seen, Fleet(now, wanted, wanted))
        if 10 < now < 60:
            assert wanted >= 5
