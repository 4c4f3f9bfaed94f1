"""Fisher's exact test, one-sided, in whole numbers: whether one share is higher than another by more than chance."""

from dataclasses import dataclass

TRILLION = 10**12
"""Chances are whole trillionths."""
_MODE = 1 << 96
"""The weight of the likeliest table. Weights are rounded down, so a chance is off by less than a trillionth."""


@dataclass(frozen=True, slots=True)
class Share:
    """``hits`` of ``total``."""

    hits: int
    total: int


def chance(newer: Share, older: Share) -> int:
    """How likely at least as many of all hits fall to ``newer`` where both have the same share, in trillionths, rounded up.

    The sums of the table are given, so this is the upper tail of a hypergeometric distribution. Weights are relative to the
    likeliest table and follow from each other, until they come to nothing on both sides.
    """
    hits, total = newer.hits + older.hits, newer.total + older.total
    least, most = max(0, hits - older.total), min(hits, newer.total)
    mode = min(max((newer.total + 1) * (hits + 1) // (total + 2), least), most)
    rest = older.total - hits
    above = everything = 0
    weight, count = _MODE, mode
    while weight and count <= most:
        everything += weight
        above += weight if count >= newer.hits else 0
        weight = weight * (newer.total - count) * (hits - count) // ((count + 1) * (rest + count + 1))
        count += 1
    weight, count = _MODE, mode
    while weight and count > least:
        weight = weight * count * (rest + count) // ((newer.total - count + 1) * (hits - count + 1))
        count -= 1
        everything += weight
        above += weight if count >= newer.hits else 0
    return max(1, -(-above * TRILLION // everything))
