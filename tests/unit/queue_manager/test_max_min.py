"""Weighted max-min shares: the fast form against the rule in its simplest words."""

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from queue_manager.domain.shares.max_min import LARGEST, Claimants, max_min

Claim = tuple[int, int, int]


def reference(total: int, claims: list[Claim]) -> list[int]:
    """The specification, word for word, on exact fractions; a claim is (least, most, weight)."""
    if sum(least for least, _, _ in claims) >= total:
        return [least for least, _, _ in claims]
    if sum(most for _, most, _ in claims) <= total:
        return [most for _, most, _ in claims]
    level = _level(total, claims)
    ideal = [min(max(weight * level, Fraction(least)), Fraction(most)) for least, most, weight in claims]
    given_ = [int(amount) for amount in ideal]
    by_remainder = sorted(range(len(claims)), key=lambda index: (given_[index] - ideal[index], index))
    for index in by_remainder[: total - sum(given_)]:
        given_[index] += 1
    return given_


def _level(total: int, claims: list[Claim]) -> Fraction:
    points = sorted({Fraction(amount, weight) for least, most, weight in claims for amount in (least, most)})
    for low, high in zip([Fraction(0), *points], points, strict=False):
        if _sum_at(high, claims) >= total:
            active = sum(weight for least, most, weight in claims if least <= weight * low and weight * high <= most)
            return low + Fraction(total - _sum_at(low, claims)) / active if _sum_at(low, claims) < total else low
    raise AssertionError("everybody has its most")


def _sum_at(level: Fraction, claims: list[Claim]) -> Fraction:
    return sum(
        (min(max(weight * level, Fraction(least)), Fraction(most)) for least, most, weight in claims), Fraction(0)
    )


def fast(groups: list[tuple[int, list[Claim]]]) -> list[list[int]]:
    """The same by max_min, all groups in one pass."""
    rows = [(number, *claim) for number, (_, claims) in enumerate(groups) for claim in claims]
    columns = np.array(rows, np.int64).reshape(-1, 4).T
    result = max_min(np.array([total for total, _ in groups], np.int64), Claimants(*columns)).tolist()
    shares = []
    for _, claims in groups:
        shares.append(result[: len(claims)])
        result = result[len(claims) :]
    return shares


@st.composite
def claims(draw: st.DrawFn, largest: int) -> Claim:
    first, second = draw(st.integers(0, largest)), draw(st.integers(0, largest))
    least = draw(st.sampled_from([0, 0, min(first, second)]))
    return least, max(first, second), draw(st.one_of(st.integers(1, 4), st.integers(1, 65535)))


def groups(largest: int) -> st.SearchStrategy[list[tuple[int, list[Claim]]]]:
    group = st.tuples(st.integers(0, 4 * largest), st.lists(claims(largest), max_size=8))
    return st.lists(group, min_size=1, max_size=5)


@given(groups(12))
@settings(max_examples=300, deadline=None)
def test_small_shares_are_those_of_the_rule(given_: list[tuple[int, list[Claim]]]) -> None:
    """Small numbers find the ties and the remainders."""
    assert fast(given_) == [reference(total, claims_) for total, claims_ in given_]


@given(groups(1 << 56))
@settings(max_examples=300, deadline=None)
def test_large_shares_are_those_of_the_rule(given_: list[tuple[int, list[Claim]]]) -> None:
    """Bytes of a large cluster, where sums pass 63 bits."""
    assert fast(given_) == [reference(total, claims_) for total, claims_ in given_]


@given(st.lists(claims(1 << 60), min_size=1, max_size=40), st.integers(0, 1 << 60))
@settings(max_examples=200, deadline=None)
def test_sums_beyond_63_bits_wrap_into_nothing(claims_: list[Claim], total: int) -> None:
    """Forty claims of the largest amount there is sum to 2⁶⁵."""
    assert fast([(total, claims_)]) == [reference(total, claims_)]


def test_ten_by_three_gives_the_odd_unit_to_the_first() -> None:
    """Equal remainders are decided by the order of the claimants."""
    assert fast([(10, [(0, 99, 1)] * 3)]) == [[4, 3, 3]]


def test_what_one_does_not_want_is_split_between_the_others() -> None:
    """Two of ten wanted by the first: eight are left for two."""
    assert fast([(10_000, [(0, 2000, 1), (0, 10_000, 1), (0, 10_000, 1)])]) == [[2000, 4000, 4000]]


def test_least_amounts_stand_even_beyond_the_total() -> None:
    """A guarantee is a promise: it is not cut when the cluster is too small for it."""
    assert fast([(10, [(12, 12, 1), (0, 5, 1)])]) == [[12, 0]]


def test_ten_thousand_of_the_largest_are_shared() -> None:
    """Nothing overflows when everybody wants everything."""
    shares = fast([(1 << 60, [(0, LARGEST, 65535)] * 10_000)])[0]
    assert sum(shares) == 1 << 60
    assert max(shares) - min(shares) == 1
