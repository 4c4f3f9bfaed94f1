"""What each elastic quota may use at the moment: its runtime, computed for a whole tree and all resources at once.

The specification, for the quotas under one parent and one resource: minima that add up to more than the parent has are
scaled down in proportion. A quota has for certain what it asks for, up to its minimum; one that does not lend has its whole
minimum. What is left is shared by weight among those that ask for more, nobody beyond its wish or its maximum. The units
that rounding leaves over go one each to the largest remainders, of equal ones to the first.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from queue_manager.domain.quotas.claims import Mask, Matrix
from queue_manager.domain.shares.fair_share import Layout, groups_of, hand_up
from queue_manager.domain.shares.max_min import HEAVIEST, LARGEST, Claimants, max_min, round_up, saturating_sums

Integers = NDArray[np.int64]

_EXACT_BITS = 52
"""Sums below this many bits are divided exactly; larger ones are first shifted down to it."""


class QuotaTerms(NamedTuple):
    """What is particular to quotas, beside their layout, whose ``given`` are the minima and ``capability`` the maxima."""

    lends: Mask
    """Whether an idle minimum is lent, by quota."""
    weight: Matrix
    """The shared weight by quota and resource, light (see ``light_weights``); 0 takes nothing beyond the minimum."""


class Runtime(NamedTuple):
    """By quota and resource: what it may use, and its minimum as scaled."""

    amount: Matrix
    minimum: Matrix


def runtime(layout: Layout, terms: QuotaTerms, request: Matrix, supply: Sequence[int]) -> Runtime:
    """What every quota may use of ``supply`` when the pods right in it ask for ``request``. The root may use the supply."""
    minimum = np.minimum(layout.given, layout.capability)
    amount = np.zeros(layout.shape, np.int64)
    if not layout.resources:
        return Runtime(amount, minimum)
    wanted = _wanted(layout, terms, request, minimum)
    amount[0] = np.array([min(amount, LARGEST) for amount in supply], np.int64)
    columns = len(layout.resources)
    for above, rows in pairwise(layout.depths):
        parents = above.stop - above.start
        total = amount[above].T.reshape(parents * columns)
        group = groups_of(layout, above, rows, columns)
        least = _scaled(total, group, minimum[rows].T.ravel())
        want, lends = wanted[rows].T.ravel(), np.tile(terms.lends[rows], columns)
        shares = _shares(total, group, least, np.where(lends, want, np.maximum(want, least)), lends, terms, rows)
        amount[rows] = shares.reshape(columns, -1).T
        minimum[rows] = least.reshape(columns, -1).T
    return Runtime(amount, minimum)


def _wanted(layout: Layout, terms: QuotaTerms, request: Matrix, minimum: Matrix) -> Matrix:
    """What each quota and those below it ask for, within their maxima; the whole minimum of one that does not lend."""
    wanted, limited = request.copy(), np.zeros(layout.shape, np.int64)
    for depth in range(len(layout.depths) - 1, -1, -1):
        rows = layout.depths[depth]
        kept = np.where(terms.lends[rows, None], 0, minimum[rows])
        limited[rows] = np.maximum(np.minimum(wanted[rows], layout.capability[rows]), kept)
        if depth:
            hand_up(layout, limited, layout.depths[depth - 1], rows, wanted, np.add)
    return limited


def _shares(
    total: Integers, group: Integers, least: Integers, want: Integers, lends: Mask, terms: QuotaTerms, rows: slice
) -> Integers:
    base = np.where(lends, np.minimum(want, least), least)
    rest = total - saturating_sums(group, base, len(total))
    weight = terms.weight[rows].T.ravel()
    more = np.where(weight > 0, want - base, 0)
    claimants = Claimants(group, np.zeros(len(group), np.int64), more, np.maximum(weight, 1))
    return base + max_min(rest, claimants)


def _scaled(total: Integers, group: Integers, amount: Integers) -> Integers:
    """``amount`` in groups whose sum is within the group's total, else its part of the total, the largest remainders up."""
    sums = saturating_sums(group, amount, len(total))
    over = sums > total
    chosen = over[group]
    if not chosen.any():
        return amount
    shift = np.maximum(np.ceil(np.log2(np.maximum(sums, 1))).astype(np.int64) - _EXACT_BITS, 0)
    own, part = group[chosen], amount[chosen] >> shift[group[chosen]]
    whole, of = total[own], np.maximum(sums >> shift, 1)[own]
    # The estimate is off by little; the product wraps, and so does what is taken from it: the remainder is exact again.
    estimate = (part.astype(np.float64) * whole / of).astype(np.int64)
    correction, remainder = np.divmod(part * whole - estimate * of, of)
    scaled = amount.copy()
    scaled[chosen] = estimate + correction
    left = np.where(over, total - saturating_sums(group, np.where(chosen, scaled, 0), len(total)), 0)
    remainders = np.zeros(len(amount), np.int64)
    remainders[chosen] = remainder
    return round_up(scaled, remainders, left, group)


def light_weights(layout: Layout, weight: Matrix) -> Matrix:
    """``weight`` with the same proportions among siblings, small enough for the sharing."""
    light, columns = weight.copy(), len(layout.resources)
    for above, rows in pairwise(layout.depths) if columns else ():
        group = groups_of(layout, above, rows, columns)
        light[rows] = _light(group, weight[rows].T.ravel()).reshape(columns, -1).T
    return light


def _light(group: Integers, weight: Integers) -> Integers:
    """The weights with the same proportions in every group, none above HEAVIEST: divided by what they have in common."""
    if not len(group):
        return weight
    starts = np.flatnonzero(np.concatenate((np.ones(1, bool), group[1:] != group[:-1])))
    place = np.cumsum(np.concatenate((np.zeros(1, np.int64), (group[1:] != group[:-1]).astype(np.int64))))
    common = np.maximum(np.gcd.reduceat(weight, starts), 1)
    small = weight // common[place]
    step = -(-np.maximum.reduceat(small, starts) // HEAVIEST)
    return np.where(small > 0, np.maximum(small // np.maximum(step, 1)[place], 1), 0)
