"""Weighted max-min fairness in integers, for many independent groups of claimants in one pass.

The specification, for one group with ``total`` to give and claimants with least, most and weight: find the level λ at
which the sum of clamp(weight · λ, least, most) is the total; each claimant gets that, rounded down, and the units that
rounding left over go one each to the largest remainders, of equal ones to the first. Least amounts are always given, even
beyond the total; with less wanted than there is, everybody has its most.

The fast form below finds every group's λ among the sorted points at which a claimant leaves its least or reaches its
most. All comparisons are exact: λ is a whole number and a fraction with a weight below 2¹⁶ as denominator. Sums that pass
63 bits are recognised by a float estimate, and only as "more than any total".
"""

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
_Number = TypeVar("_Number", np.int64, np.float64)

LARGEST = 1 << 60
"""The largest amount: what is above it is counted as this. No total comes near."""
HEAVIEST = 65535
"""The largest weight."""

_TOO_MUCH = 1 << 61
_FRACTION_BITS = 32
"""Two different fractions with denominators up to HEAVIEST are more than 2⁻³² apart."""


class Claimants(NamedTuple):
    """Claimants sorted by ``group``; 0 ≤ least ≤ most ≤ LARGEST and 1 ≤ weight ≤ HEAVIEST."""

    group: Integers
    least: Integers
    most: Integers
    weight: Integers


class _Level(NamedTuple):
    """The level of each group, as the fraction (whole + part / weight), where it lies between least and most of all."""

    whole: Integers
    part: Integers
    weight: Integers


def max_min(total: Integers, claimants: Claimants) -> Integers:
    """What each claimant gets of its group's ``total`` (indexed by group number)."""
    given = claimants.least.copy()
    rest = _less_sum(total, claimants.group, claimants.least, len(total))
    satisfied = _fits(rest, claimants.group, claimants.most - claimants.least, len(total))
    contested = (rest > 0) & ~satisfied
    every = satisfied[claimants.group]
    given[every] = claimants.most[every]
    open_ = contested[claimants.group] & (claimants.most > claimants.least)
    if open_.any():
        numbers = np.cumsum(contested) - 1
        within = Claimants(*(column[open_] for column in claimants))
        within = within._replace(group=numbers[within.group])
        given[open_] = _contest(rest[contested], within)
    return given


def _contest(rest: Integers, claimants: Claimants) -> Integers:
    """Shares in groups in which the least leaves ``rest`` > 0 and not everybody can have its most."""
    count = len(rest)
    budget = rest + _sums(claimants.group, claimants.least, count)
    level = _levels(budget, claimants)
    group, weight = claimants.group, claimants.weight
    # weight · whole stays below most + weight, so that it cannot pass 63 bits
    whole = np.minimum(level.whole[group], claimants.most // weight + 1)
    scaled = weight * level.part[group]
    ideal = whole * weight + scaled // level.weight[group]
    given: Integers = np.clip(ideal, claimants.least, claimants.most)
    remainder = np.where((ideal >= claimants.least) & (ideal < claimants.most), scaled % level.weight[group], 0)
    return round_up(given, remainder, budget - _sums(group, given, count), group)


def _levels(budget: Integers, claimants: Claimants) -> _Level:
    """The λ of every group, from the last turning point at which the sum is within the budget."""
    count = len(budget)
    group, amount, weight, fixed, active = _turning_points(claimants)
    whole, part = amount // weight, amount % weight
    fraction = ((part << _FRACTION_BITS) // weight).astype(np.uint32)
    # numpy sorts 16-bit numbers in linear time
    narrow = group.astype(np.uint16) if count <= 1 << 16 else group
    order = np.lexsort((fraction, whole, narrow))
    group, whole, part, weight = group[order], whole[order], part[order], weight[order]
    starts = np.searchsorted(group, np.arange(count))
    from_start = claimants.least == 0
    fixed_first = _sums(claimants.group, claimants.least, count)
    active_first = _sums(claimants.group[from_start], claimants.weight[from_start], count)
    fixed_after = _running(fixed[order], starts, group) + fixed_first[group]
    active_after = _running(active[order], starts, group) + active_first[group]
    fixed_estimate = _running(fixed[order].astype(np.float64), starts, group) + fixed_first[group]
    estimate = fixed_estimate + active_after * (whole + part / weight)
    exact = fixed_after + active_after * whole - (-(active_after * part) // weight)
    within = (estimate < _TOO_MUCH) & (exact <= budget[group])
    passed = np.bincount(group[within], minlength=count)
    last = starts + passed - 1
    fixed_here = np.where(passed > 0, fixed_after[last], fixed_first)
    active_here = np.where(passed > 0, active_after[last], active_first)
    level_whole, level_part = np.divmod(budget - fixed_here, active_here)
    return _Level(level_whole, level_part, active_here)


def _turning_points(claimants: Claimants) -> tuple[Integers, Integers, Integers, Integers, Integers]:
    """Where claimants leave their least (unless that is 0: at once) and reach their most: group, amount (λ · weight),
    weight, and by how much the sum that is fixed and the weight that is active change there."""
    lifted = claimants.least > 0
    group = np.concatenate((claimants.group[lifted], claimants.group))
    amount = np.concatenate((claimants.least[lifted], claimants.most))
    weight = np.concatenate((claimants.weight[lifted], claimants.weight))
    fixed = np.concatenate((-claimants.least[lifted], claimants.most))
    active = np.concatenate((claimants.weight[lifted], -claimants.weight))
    return group, amount, weight, fixed, active


def round_up(given: Integers, remainder: Integers, left: Integers, group: Integers) -> Integers:
    """One unit more for the ``left`` largest remainders of each group, of equal ones for the first."""
    candidates = np.flatnonzero((remainder > 0) & (left[group] > 0))
    narrow = group.astype(np.uint16) if len(left) <= 1 << 16 else group
    order = candidates[np.lexsort((-remainder[candidates], narrow[candidates]))]
    groups = group[order]
    rank = np.arange(len(order)) - np.searchsorted(groups, groups)
    given[order[rank < left[groups]]] += 1
    return given


def _running(steps: NDArray[_Number], starts: Integers, group: Integers) -> NDArray[_Number]:
    """Sums of ``steps`` so far, within each group; whole numbers may wrap, and are right again where the sum is small."""
    total = np.cumsum(steps)
    before = np.concatenate((np.zeros(1, total.dtype), total))[starts]
    result: NDArray[_Number] = total - before[group]
    return result


def _sums(group: Integers, amount: Integers, count: int) -> Integers:
    """The sum of ``amount`` by group, 0 for a group without members; ``group`` is sorted."""
    total = np.concatenate((np.zeros(1, np.int64), np.cumsum(amount)))
    bounds = np.searchsorted(group, np.arange(count + 1))
    return total[bounds[1:]] - total[bounds[:-1]]


def saturating_sums(group: Integers, amount: Integers, count: int) -> Integers:
    """The sum of ``amount`` ≥ 0 by sorted group; 2⁶¹, which is more than any total, stands for all that is more."""
    estimate = np.bincount(group, weights=amount.astype(np.float64), minlength=count)
    exact = _sums(group, amount, count)
    return np.where(estimate < _TOO_MUCH, exact, _TOO_MUCH)


def _less_sum(total: Integers, group: Integers, amount: Integers, count: int) -> Integers:
    return total - saturating_sums(group, amount, count)


def _fits(rest: Integers, group: Integers, amount: Integers, count: int) -> NDArray[np.bool_]:
    fits: NDArray[np.bool_] = saturating_sums(group, amount, count) <= rest
    return fits
