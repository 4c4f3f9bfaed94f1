"""Knative's autoscaler: windows, targets, panic, rates, and the way to zero, against its own words for them in floats."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_autoscaler.domain.knative.bounds import Life, size
from inference_autoscaler.domain.knative.configuration import KnativeConfiguration
from inference_autoscaler.domain.knative.decider import Panic, Wish, wish
from inference_autoscaler.domain.knative.load import Load
from inference_autoscaler.domain.knative.scaling import GROUP, Scaling, read

DEFAULTS = KnativeConfiguration()


def scaling(concurrency: int | None = None, **said: str) -> Scaling:
    annotations = {GROUP + name.replace("_", "-"): value for name, value in said.items()}
    return read(annotations, concurrency, DEFAULTS)


def steady(value: float, until: int = 600_000) -> Load:
    load = Load()
    load.add(until, round(value * 1000))
    return load


@pytest.mark.parametrize(
    ("given", "target"),
    [
        (scaling(), 70.0),
        (scaling(target="10"), 7.0),
        (scaling(12), 8.4),
        (scaling(12, target="20"), 8.4),
        (scaling(target="10", target_utilization_percentage="100"), 10.0),
        (scaling(metric="rps"), 140.0),
        (scaling(12, metric="rps", target="50"), 35.0),
        (scaling(target="0.01"), 0.01),
    ],
)
def test_what_a_pod_is_aimed_at(given: Scaling, target: float) -> None:
    assert given.target_micro == round(target * 1_000_000)


def test_a_key_that_there_is_not_is_an_error() -> None:
    with pytest.raises(ValueError, match="none of the keys"):
        KnativeConfiguration.of({"max-scale-up-speed": "3"})
    with pytest.raises(ValueError, match="stable-window"):
        KnativeConfiguration.of({"stable-window": "a minute"})


def test_a_window_averages_over_what_is_known_of_it() -> None:
    load = Load()
    load.add(100_000, 5_000)
    load.add(106_000, 68_000)
    load.add(110_000, None)
    load.add(112_000, 8_000)
    assert load.average(48_000, 108_000) == (52_000 * 5_000 + 6_000 * 68_000, 58_000)
    assert load.average(106_000, 110_000) is None
    assert load.average(108_000, 112_000) == (2_000 * 8_000, 2_000)
    assert not load.add(112_000, 9_000), "one sample says it once"


@given(
    st.lists(st.tuples(st.integers(1, 40), st.one_of(st.none(), st.integers(0, 50))), max_size=12), st.integers(1, 90)
)
def test_a_window_is_the_mean_of_its_known_seconds(samples: list[tuple[int, int | None]], window: int) -> None:
    load, seconds = Load(), list[int | None]()
    for length, value in samples:
        load.add(load.heard + length * 1000, None if value is None else value * 1000)
        seconds += [value] * length
    known = [value for value in seconds[-window:] if value is not None]
    found = load.average((len(seconds) - window) * 1000, len(seconds) * 1000)
    assert (found is None) == (not known)
    assert found is None or (found[0] == sum(known) * 1_000_000 and found[1] == len(known) * 1000)


@given(st.integers(0, 3000), st.integers(1, 60), st.integers(0, 40))
def test_without_a_change_as_many_pods_as_the_load_needs(tenths: int, target: int, ready: int) -> None:
    spec = scaling(target=str(target), target_utilization_percentage="100")
    found = wish(spec, steady(tenths / 10), Panic(), ready, 600_000)
    needed = math.ceil(tenths / 10 / target - 1e-9)
    counted = max(1, ready)
    wanted = min(max(needed, counted // 2), 1000 * counted)
    assert found is not None and found.pods == wanted
    assert found.in_panic == (needed / counted >= 2)


def test_in_panic_nothing_is_taken_away_until_a_window_after_its_last_reason() -> None:
    spec, panic, load = scaling(target="10"), Panic(), steady(5, 100_000)
    load.add(106_000, 68_000)
    assert (found := wish(spec, load, panic, 1, 108_000)) is not None and (found.pods, found.in_panic) == (10, True)
    load.add(108_000, 5_000)
    load.add(260_000, 5_000)
    assert (held := wish(spec, load, panic, 10, 168_000)) is not None and held.pods == 10
    assert (over := wish(spec, load, panic, 10, 170_000)) is not None and (over.pods, over.in_panic) == (5, False)


def test_growth_and_shrinking_keep_to_their_rates() -> None:
    slow = replace(scaling(target="10"), up_rate_milli=3_000)
    assert (up := wish(slow, steady(100), Panic(), 1, 600_000)) is not None and up.pods == 3
    assert (down := wish(slow, steady(1), Panic(), 9, 600_000)) is not None and down.pods == 4


def test_an_activation_scale_holds_where_anything_is_to_do() -> None:
    spec = scaling(target="10", activation_scale="3")
    assert (some := wish(spec, steady(1), Panic(), 0, 600_000)) is not None and some.pods == 3
    assert (none := wish(spec, steady(0), Panic(), 0, 600_000)) is not None and none.pods == 0


def test_nothing_known_is_no_wish() -> None:
    assert wish(scaling(), steady(5, 100_000), Panic(), 3, 200_000) is None


def test_a_delay_keeps_the_most_of_its_time() -> None:
    spec, panic, load = scaling(target="10", scale_down_delay="5m"), Panic(), steady(12, 60_000)
    assert (first := wish(spec, load, panic, 1, 60_000)) is not None and first.pods == 2
    load.add(900_000, 3_000)
    pods = [found.pods for at in range(62_000, 500_000, 2_000) if (found := wish(spec, load, panic, 2, at))]
    assert pods[140] == 2 and pods[-1] == 1


def test_the_way_to_zero_takes_a_window_and_a_grace() -> None:
    spec, life, none = replace(scaling(), minimum=0), Life(), Wish(0, "nothing")
    sizes = {at: size(spec, none, life, 1, 1, at, reachable=True) for at in range(0, 120_000, 2_000)}
    assert next(at for at, pods in sizes.items() if pods == 0) == 90_000


def test_a_pod_that_does_not_serve_yet_is_not_idle() -> None:
    spec, life, none = replace(scaling(), minimum=0), Life(started=True), Wish(0, "nothing")
    assert all(size(spec, none, life, 1, 0, at, reachable=True) == 1 for at in range(0, 600_000, 2_000))


def test_the_bounds_hold_and_the_initial_size_until_it_is_reached() -> None:
    spec = replace(scaling(), minimum=2, maximum=5, initial=4)
    life, none, many = Life(), Wish(0, "nothing"), Wish(9, "much")
    assert size(spec, none, life, 4, 3, 0, reachable=True) == 4
    assert size(spec, none, life, 4, 4, 0, reachable=True) == 2
    assert size(spec, many, life, 4, 4, 0, reachable=True) == 5
    assert size(spec, None, life, 3, 3, 0, reachable=True) == 3
    assert size(spec, none, life, 3, 3, 0, reachable=False) == 0
