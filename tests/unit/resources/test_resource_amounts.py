"""Vectors of amounts: the algebra that every service counts with."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources import (
    Amounts,
    QuantityError,
    add,
    exceeds,
    fits,
    format_amounts,
    is_zero,
    largest,
    parse_amounts,
    smallest,
    subtract,
    times,
)
from resources.amounts import format_amount

NAMES = ("cpu", "memory", "nvidia.com/gpu", "pods", "kubernetes.io/batch-memory", "volcano.sh/vgpu-memory")
signed = st.dictionaries(st.sampled_from(NAMES), st.integers(-(10**15), 10**15))
amounts = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 10**15))


def without_zeros(vector: Amounts) -> Amounts:
    return {name: amount for name, amount in vector.items() if amount}


@given(signed, signed, signed)
def test_adding_is_commutative_and_associative_and_undone_by_subtracting(a: Amounts, b: Amounts, c: Amounts) -> None:
    assert add(a, b) == add(b, a)
    assert add(add(a, b), c) == add(a, add(b, c))
    assert without_zeros(subtract(add(a, b), b)) == without_zeros(a)
    assert add(a, {}) == a


@given(signed, st.integers(0, 20))
def test_times_is_repeated_adding(a: Amounts, factor: int) -> None:
    total: Amounts = {}
    for _ in range(factor):
        total = add(total, a)
    assert without_zeros(times(a, factor)) == without_zeros(total)


@given(amounts, amounts, amounts)
def test_the_largest_is_the_least_that_holds_both(a: Amounts, b: Amounts, c: Amounts) -> None:
    both = largest(a, b)
    assert both == largest(b, a)
    assert fits(a, both) and fits(b, both)
    assert fits(both, c) == (fits(a, c) and fits(b, c))


@given(amounts, amounts)
def test_the_smallest_of_two_limits_allows_what_both_allow(a: Amounts, b: Amounts) -> None:
    limit = smallest(a, b)
    assert limit == smallest(b, a)
    for name in NAMES:
        need = {name: 10**14}
        assert (not exceeds(need, limit)) == (not exceeds(need, a) and not exceeds(need, b))


@given(amounts, amounts)
def test_what_fits_leaves_nothing_below_zero(need: Amounts, have: Amounts) -> None:
    assert fits(need, have) == all(amount >= 0 for amount in subtract(have, need).values())


@given(amounts, amounts)
def test_the_operands_stay_as_they_are(a: Amounts, b: Amounts) -> None:
    before = dict(a), dict(b)
    for operation in (add, subtract, largest, smallest, fits, exceeds):
        operation(a, b)
    assert (a, b) == before


@given(amounts)
def test_formatted_amounts_read_back_as_themselves(a: Amounts) -> None:
    assert parse_amounts(format_amounts(a)) == a


def test_a_need_of_zero_or_less_always_fits() -> None:
    assert fits({"cpu": 0, "memory": -5}, {})
    assert not fits({"cpu": 1}, {})
    assert not fits({"cpu": 1}, {"cpu": 0})


def test_nothing_exceeds_a_limit_that_is_silent() -> None:
    assert exceeds({"cpu": 5, "memory": 9, "pods": 2}, {"cpu": 4, "memory": 8}) == ["cpu", "memory"]
    assert exceeds({"cpu": 5}, {}) == []


def test_zero_is_nothing_of_anything() -> None:
    assert is_zero({}) and is_zero({"cpu": 0})
    assert not is_zero({"cpu": 0, "pods": 1})


def test_cpu_counts_in_thousandths_and_all_else_in_units() -> None:
    listed = {"cpu": "1500m", "limits.cpu": 1, "memory": "1Gi", "pods": "1", "kubernetes.io/batch-cpu": "1500"}
    expected = {"cpu": 1500, "limits.cpu": 1000, "memory": 1 << 30, "pods": 1, "kubernetes.io/batch-cpu": 1500}
    assert parse_amounts(listed) == expected
    assert parse_amounts(None) == {}


def test_the_error_names_the_resource() -> None:
    with pytest.raises(QuantityError, match="memory: '1Gib'"):
        parse_amounts({"cpu": 1, "memory": "1Gib"})


@pytest.mark.parametrize(
    ("name", "amount", "text"),
    [
        ("cpu", 1500, "1500m"),
        ("memory", 8 << 30, "8Gi"),
        ("requests.storage", 1 << 20, "1Mi"),
        ("kubernetes.io/batch-memory", 1 << 30, "1Gi"),
        ("koordinator.sh/gpu-memory", 1 << 30, "1Gi"),
        ("volcano.sh/vgpu-memory", 8192, "8192"),
        ("nvidia.com/gpu", 1024, "1024"),
    ],
)
def test_bytes_are_written_with_binary_suffixes_and_counts_are_not(name: str, amount: int, text: str) -> None:
    """Memory of virtual cards is counted in MiB, so 8192 of it are not 8 KiB."""
    assert format_amount(name, amount) == text
