"""Sizes by what users should feel: goals, loads, needs, margins, seasons, plans."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as some

from inference_autoscaler.domain.target.goal import LATENCY, WAIT, Goal
from inference_autoscaler.domain.target.margin import FIRST_FACTOR, LEAST_FACTOR, MOST_FACTOR, factor, margin
from inference_autoscaler.domain.target.need import keeps, slots_needed
from inference_autoscaler.domain.target.offered import Bucket, Offered
from inference_autoscaler.domain.target.plan import Fleet, plan
from inference_autoscaler.domain.target.seasons import MINUTE_MS, Seasons
from inference_autoscaler.domain.target.spans import Span
from inference_autoscaler.domain.target.watch import Model, Sample, Watch

AT_ONCE = Goal.of("queue wait <= 1s")
MODEL = Model(slots=10, start_ms=60_000)
TICK = 2_000


def watched(loads: list[int], ready: int = 1000, service_ms: int = 1_000) -> Watch:
    """A service that was offered so many requests at a time, for two seconds each, and had replicas enough unless said."""
    watch = Watch()
    for number, load in enumerate(loads, start=1):
        came = load * TICK * 1000 // service_ms
        watch.take(Sample(number * TICK, TICK, came, load * 1000), AT_ONCE, MODEL, ready)
    return watch


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("queue wait <= 1s", Goal(WAIT, 1_000)),
        ("p95 latency ≤ 300 ms", Goal(LATENCY, 300, 950)),
        ("p99.9 queue wait < 0.5s", Goal(WAIT, 500, 999)),
        (" P50 Latency<=2m ", Goal(LATENCY, 120_000, 500)),
    ],
)
def test_a_goal_is_read_in_the_user_s_words(text: str, goal: Goal) -> None:
    assert Goal.of(text) == goal
    assert Goal.of(str(goal)) == goal


@pytest.mark.parametrize(
    "text", ["", "latency", "p95 latency <= 0ms", "p100 latency <= 1s", "fast", "latency <= 1s please"]
)
def test_words_that_are_no_goal_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no target"):
        Goal.of(text)


def test_what_a_request_takes_is_learned_and_leaves_the_rest_of_a_latency_for_waiting() -> None:
    watch = watched([20] * 60, service_ms=400)
    assert watch.offered.service_us == pytest.approx(400_000, rel=0.02)
    assert watch.wait_ms(Goal.of("latency <= 1s")) == pytest.approx(600, abs=10)
    assert watch.wait_ms(Goal.of("latency <= 300ms")) == 0


def test_requests_that_wait_are_no_load() -> None:
    """Twenty requests a second that take a second are a load of 20, however many of them have piled up."""
    offered, waiting = Offered(), 0
    for number in range(1, 61):
        waiting += 20
        offered.take(number * TICK, TICK, 40_000, (10 + waiting) * 1000, slots=10)
    assert offered.service_us == pytest.approx(1_000_000, rel=0.1)
    assert offered.buckets[-1].load_milli == pytest.approx(20_000, rel=0.15)


buckets = some.lists(some.integers(0, 200_000), min_size=2, max_size=12).map(
    lambda came: [Bucket(2_000 * (at + 1), 2_000, one, one // 2) for at, one in enumerate(came)]
)


@given(buckets, some.integers(100_000, 5_000_000), some.integers(0, 3_000), some.integers(0, 200))
def test_the_slots_needed_keep_the_goal_and_noticeably_fewer_do_not(
    listed: list[Bucket], service_us: int, wait_ms: int, late: int
) -> None:
    """Compared with trying them one by one from above."""
    most = max(one.load_milli for one in listed)
    found = slots_needed(listed, service_us, wait_ms, late)
    steps = range(0, most + 1, max(1, most // 64))
    kept = {slots for slots in steps if keeps(listed, slots, service_us, wait_ms, late)}
    assert found <= most
    for lower, upper in pairwise(steps):
        assert not (lower in kept and upper not in kept), "more slots are never worse"
    if kept:
        assert found <= min(kept) + max(1, most // 64)


def test_a_burst_that_may_wait_needs_fewer_slots_than_its_peak() -> None:
    loads = [10, 10, 10, 60, 10, 10, 10]
    listed = [Bucket(2_000 * at, 2_000, load * 2_000, load * 1_000) for at, load in enumerate(loads, start=1)]
    at_once = slots_needed(listed, 1_000_000, 0, 0)
    patient = slots_needed(listed, 1_000_000, 1_000, 0)
    assert patient < at_once <= 60_000


def span(score: int | None, variance: int = 0, level: int = 10_000) -> Span:
    return Span(1, level, variance, level, level, 1, score)


def test_a_load_that_never_scattered_has_the_margin_of_independent_requests() -> None:
    free = margin(16_000, [])
    assert (free.scatter_milli, free.factor_milli) == (4_000, FIRST_FACTOR)
    assert margin(16_000, [span(None, variance=90_000_000)]).scatter_milli == 12_000


@given(some.lists(some.integers(-10_000, 20_000)))
def test_a_factor_is_what_the_past_was_wrong_by_within_bounds(scores: list[int]) -> None:
    found = factor([span(one) for one in scores])
    assert LEAST_FACTOR <= found <= MOST_FACTOR
    assert factor([span(one) for one in reversed(scores)]) == found
    if len(scores) >= 8 and min(scores) >= MOST_FACTOR:
        assert found == MOST_FACTOR


def test_a_steady_load_is_served_with_a_margin_and_no_more() -> None:
    watch = watched([100] * 300)
    found = plan(watch, AT_ONCE, MODEL, Fleet(10, 10))
    assert found.pods == 12, found.why
    assert plan(watch, AT_ONCE, MODEL, Fleet(13, 13)).pods == 13, (
        "the last one goes when a third of another is idle, too"
    )
    assert "100.0 requests at a time of late" in found.why
    assert "queue wait ≤ 1000 ms" in found.why


def test_bursts_are_kept_room_for_between_them() -> None:
    """Ten seconds of 100 a minute: a steady load of the same mean needs three replicas, this one is never without ten."""
    loads = ([100] * 5 + [0] * 25) * 10
    assert plan(watched(loads), AT_ONCE, MODEL, Fleet(3, 3)).pods >= 10
    assert plan(watched([17] * 300), AT_ONCE, MODEL, Fleet(3, 3)).pods == 3


def test_what_is_starting_is_not_asked_for_again_and_kept_while_requests_wait() -> None:
    watch = watched([10] * 30)
    for number in range(31, 41):
        watch.take(Sample(number * TICK, TICK, 60_000, 10_000 + (number - 30) * 40_000), AT_ONCE, MODEL, ready=1)
    asked = plan(watch, AT_ONCE, MODEL, Fleet(1, 1)).pods
    assert asked > 3
    started = plan(watch, AT_ONCE, MODEL, Fleet(asked, 1, [60_000] * (asked - 1))).pods
    assert started == asked
    soon = plan(watch, AT_ONCE, MODEL, Fleet(asked, 1, [1_000] * (asked - 1)))
    assert soon.pods == asked, "they come sooner than new ones would"
    assert "to be rid of those that wait" in soon.why


def test_a_load_that_is_gone_is_held_for_ten_minutes_and_then_given_up() -> None:
    loads = [100] * 150
    assert plan(watched([*loads, *([10] * 290)]), AT_ONCE, MODEL, Fleet(12, 12)).pods >= 10
    assert plan(watched([*loads, *([10] * 1300)]), AT_ONCE, MODEL, Fleet(12, 12)).pods <= 3


def test_nobody_needs_nothing() -> None:
    assert plan(watched([0] * 400), AT_ONCE, MODEL, Fleet(1, 1)).pods == 0
    assert plan(watched([0] * 400), AT_ONCE, MODEL, Fleet(1, 1), spare=2).pods == 2


def test_a_season_counts_once_it_was_right_and_no_longer_when_it_is_wrong() -> None:
    seasons, step = Seasons(), 15_000
    for number in range(1, 40 * 4):
        seasons.learn(number * step, 50_000 if number % 40 < 6 else 1_000, 60_000)
    before = 160 * step - step
    assert seasons.floor(before, before + 120_000) == (50_000, 10 * MINUTE_MS)
    for number in range(160, 160 + 40 * 3):
        seasons.learn(number * step, number * 1_000, 60_000)
    assert seasons.floor(number * step, number * step + 120_000) == (0, 0)


def test_a_season_never_lets_a_size_go_down() -> None:
    loads = ([10] * 300 + [100] * 30) * 3
    watch = watched(loads)
    with_seasons = plan(watch, AT_ONCE, MODEL, Fleet(1, 1)).pods
    watch.seasons = Seasons()
    assert plan(watch, AT_ONCE, MODEL, Fleet(1, 1)).pods <= with_seasons


@given(some.lists(some.integers(0, 300), min_size=1, max_size=120), some.integers(0, 119))
def test_a_successor_goes_on_as_its_predecessor_would_have(loads: list[int], cut: int) -> None:
    whole, first = watched(loads), watched(loads[:cut])
    second = Watch.of(first.manifest()) if loads[:cut] else first
    for number, load in enumerate(loads[cut:], start=len(loads[:cut]) + 1):
        second.take(Sample(number * TICK, TICK, load * TICK, load * 1000), AT_ONCE, MODEL, 1000)
    assert second.manifest() == whole.manifest()
    assert plan(second, AT_ONCE, MODEL, Fleet(3, 3)) == plan(whole, AT_ONCE, MODEL, Fleet(3, 3))
