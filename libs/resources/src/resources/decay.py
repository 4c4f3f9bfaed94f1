"""What was used, counted less the longer ago it was: half of it after each half-life. Integers only, the same everywhere."""

from collections.abc import Mapping
from functools import lru_cache
from math import isqrt

from resources.amounts import Amounts

_BITS = 16
"""Fractions of a half-life are told apart down to 2⁻¹⁶ of it."""


def _roots() -> tuple[int, ...]:
    """2⁻¹ᐟ², 2⁻¹ᐟ⁴, … in 2⁻⁶⁴."""
    found, power = [], 1 << 63
    for _ in range(_BITS):
        power = isqrt(power << 64)
        found.append(power)
    return tuple(found)


_ROOTS = _roots()


@lru_cache(maxsize=4096)
def remaining(elapsed_ms: int, half_life_ms: int) -> int:
    """What is left of 2⁶⁴ after ``elapsed_ms``; all of it where no time has passed."""
    if elapsed_ms <= 0:
        return 1 << 64
    halvings, rest = divmod(elapsed_ms, half_life_ms)
    if halvings > 64:
        return 0
    fraction, left = (rest << _BITS) // half_life_ms, (1 << 64) >> halvings
    for bit, root in enumerate(_ROOTS):
        if fraction >> (_BITS - 1 - bit) & 1:
            left = left * root >> 64
    return left


def averaged(past: Mapping[str, int], used: Mapping[str, int], elapsed_ms: int, half_life_ms: int) -> Amounts:
    """The average use after ``used`` was held for ``elapsed_ms`` more, where it was ``past`` before; recent use weighs more.

    ``used`` that stays becomes the average in the end; a use that ended is half as much after each half-life.
    """
    left = remaining(elapsed_ms, half_life_ms)
    names = sorted({*past, *used})
    found = {name: (past.get(name, 0) * left + used.get(name, 0) * ((1 << 64) - left)) >> 64 for name in names}
    return {name: amount for name, amount in found.items() if amount}
