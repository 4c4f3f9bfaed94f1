"""Histograms that forget: against plain arithmetic with floats, whatever the order and however often somebody looks."""

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slo_controller.domain.prediction.histogram import CPU, HOUR_MS, MEMORY, Histogram, Scale, merged

DAY = 24 * HOUR_MS
SAMPLES = st.lists(st.tuples(st.integers(0, 64_000), st.integers(0, 20 * DAY)), min_size=1, max_size=40)


def filled(samples, scale: Scale = CPU) -> Histogram:
    histogram = Histogram(scale)
    for amount, at in samples:
        histogram.add(amount, at)
    return histogram


def plain_percentile(samples, percent: int, slack: float) -> int:
    """By the definition: the end of the first bucket at which the weights come to ``percent``, a little more or less."""
    newest, weights = max(at for _, at in samples), defaultdict(float)
    for amount, at in samples:
        weights[CPU.bucket(amount)] += 0.5 ** ((newest - at) / CPU.half_life_ms)
    wanted, seen = sum(weights.values()) * (percent / 100 + slack), 0.0
    for bucket in sorted(weights):
        seen += weights[bucket]
        if seen >= wanted:
            return CPU.end(bucket)
    return CPU.end(max(weights))


@given(SAMPLES, st.sampled_from((50, 90, 95, 98)))
def test_a_percentile_is_that_of_its_definition(samples, percent: int) -> None:
    samples = sorted(samples, key=lambda sample: sample[1])
    found = filled(samples).percentile(percent)
    assert plain_percentile(samples, percent, -0.005) <= found <= plain_percentile(samples, percent, 0.005)


@given(st.lists(st.integers(0, 64_000), min_size=1, max_size=20), st.integers(0, DAY), st.randoms())
def test_samples_of_one_moment_may_come_in_any_order(amounts: list[int], at: int, chance) -> None:
    first = filled([(amount, at) for amount in amounts])
    chance.shuffle(amounts)
    assert filled([(amount, at) for amount in amounts]).dump() == first.dump()


@given(SAMPLES)
def test_what_is_dumped_goes_on_as_if_nothing_had_been(samples) -> None:
    samples = sorted(samples, key=lambda sample: sample[1])
    half = len(samples) // 2
    loaded = Histogram.load(CPU, filled(samples[:half]).dump())
    for amount, at in samples[half:]:
        loaded.add(amount, at)
    assert loaded.dump() == filled(samples).dump()


@given(st.integers(0, 1_000_000))
def test_an_amount_lies_in_its_bucket_which_is_five_percent_wide(amount: int) -> None:
    bucket = CPU.bucket(amount)
    assert CPU.starts[bucket] <= amount < CPU.end(bucket)
    assert CPU.end(bucket) <= max(25, CPU.starts[bucket] * 1.05 + 26)


def test_the_ends_of_the_scales() -> None:
    assert (CPU.end(0), MEMORY.end(0)) == (25, 5 << 20)
    assert Histogram(CPU).percentile(90) == 0
    assert filled([(10**12, 0)]).percentile(90) == CPU.starts[-1] >= 1_024_000


def test_half_as_much_counts_after_a_half_life() -> None:
    """Two old samples weigh as much as one new one; the 50th percentile is at the edge."""
    old, new = CPU.end(CPU.bucket(1_000)), CPU.end(CPU.bucket(8_000))
    assert filled([(1_000, 0)] * 2 + [(8_000, CPU.half_life_ms)]).percentile(50) == old
    assert filled([(1_000, 0)] * 2 + [(8_000, 2 * CPU.half_life_ms)]).percentile(50) == new


def test_what_is_long_ago_is_forgotten() -> None:
    histogram = filled([(64_000, 0), (100, 30 * DAY)])
    assert histogram.percentile(100) == CPU.end(CPU.bucket(100))


@pytest.mark.parametrize("later", [0, HOUR_MS, 5 * DAY])
def test_a_sample_that_is_taken_back_counts_no_more(later: int) -> None:
    histogram = filled([(5_000, 0)])
    histogram.add(100, later)
    histogram.take(5_000, 0)
    assert set(histogram.weights) == {CPU.bucket(100)}


def test_histograms_together_are_as_one_with_all_samples() -> None:
    early, late = [(1_000, HOUR_MS)] * 4, [(4_000, 3 * DAY)]
    together = merged([filled(early), filled(late), Histogram(CPU)])
    assert [together.percentile(percent) for percent in (5, 50, 95)] == [
        filled(early + late).percentile(percent) for percent in (5, 50, 95)
    ]
    assert merged([]).percentile(50) == 0
