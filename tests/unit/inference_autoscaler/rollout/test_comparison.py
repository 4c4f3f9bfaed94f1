"""When one revision does worse than another: the exact test against its definition, margins, and what many looks may cost."""

from fractions import Fraction
from math import comb
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_autoscaler.domain.rollout.comparison import worse
from inference_autoscaler.domain.rollout.exact_test import TRILLION, Share, chance
from inference_autoscaler.domain.rollout.plan import Plan, Step

PLAN = Plan((Step(50, 60_000),))


def upper_tail(newer: Share, older: Share) -> Fraction:
    """The definition: all tables with these sums in which at least as many hits fall to the newer one."""
    hits, total = newer.hits + older.hits, newer.total + older.total
    most = min(hits, newer.total)
    ways = sum(comb(newer.total, x) * comb(older.total, hits - x) for x in range(newer.hits, most + 1) if hits >= x)
    return Fraction(ways, comb(total, hits))


@st.composite
def shares(draw: st.DrawFn) -> Share:
    total = draw(st.integers(1, 400))
    return Share(draw(st.integers(0, total)), total)


@settings(max_examples=300, deadline=None)
@given(shares(), shares())
def test_the_chance_is_that_of_the_definition(newer: Share, older: Share) -> None:
    exact = upper_tail(newer, older) * TRILLION
    assert exact - 1 <= chance(newer, older) <= exact + 2


def test_a_million_requests_take_no_longer_than_a_few_thousand_steps() -> None:
    assert chance(Share(5_200, 500_000), Share(5_000, 500_000)) < TRILLION // 20
    assert chance(Share(5_000, 500_000), Share(5_000, 500_000)) > TRILLION // 3


def counts(requests: int, errors: int, *within: int) -> dict[str, int]:
    bounds = zip(("50", "100", "200", "400"), within, strict=False)
    return {"requests": requests, "errors": errors, **dict(bounds)}


@pytest.mark.parametrize(
    ("newer", "older", "reason"),
    [
        (counts(300, 15), counts(3_000, 15), "ErrorRateHigher"),
        (counts(300, 1), counts(3_000, 15), ""),
        (counts(300, 300), counts(300, 300), ""),
        (counts(300_000, 1_800), counts(300_000, 1_500), ""),  # surely more, and too little more to matter
        (counts(20, 2), counts(2_000, 20), ""),  # ten times as many, and it may be chance
        (counts(300, 0, 0, 200, 290, 300), counts(3_000, 0, 0, 2_950, 2_990, 3_000), "LatencyHigher"),
        (counts(300, 0, 300, 300, 300, 300), counts(3_000, 0, 0, 2_950, 2_990, 3_000), ""),
        (counts(300, 0, 0, 0, 300, 300), counts(300, 0, 0, 300, 300, 300), "LatencyHigher"),
        (counts(0, 0), counts(3_000, 15), ""),
    ],
)
def test_worse_is_both_enough_to_matter_and_no_chance(
    newer: dict[str, int], older: dict[str, int], reason: str
) -> None:
    found = worse(newer, older, PLAN, 1)
    assert (found.reason if found is not None else "") == reason
    if found is not None:
        assert " of 300)" in found.words and "by chance in 1 of" in found.words


def test_equal_revisions_are_taken_back_no_more_often_than_the_risk_over_all_looks() -> None:
    """One in a hundred was asked for: of 300 rollouts with 20 looks each at most a few may go wrong."""
    wrong = 0
    for seed in range(300):
        random, newer, older = Random(seed), counts(0, 0), counts(0, 0)
        for look in range(1, 21):
            for one in (newer, older):
                one["requests"] += 100
                one["errors"] += sum(random.random() < 0.05 for _ in range(100))
            if worse(newer, older, PLAN, look) is not None:
                wrong += 1
                break
    assert wrong <= 6
