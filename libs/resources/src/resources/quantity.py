"""Kubernetes quantities (``100m``, ``1e3``, ``1.5Gi``, ``0.5``) as exact integers.

The grammar is that of ``k8s.io/apimachinery/pkg/api/resource``: a signed decimal number followed by a binary suffix
(Ki … Ei), a decimal suffix (n, u, m, k, M, G, T, P, E) or a decimal exponent (e3, E3). What is finer than the unit asked
for is rounded up, away from zero, and what is larger than 64 bits can tell is capped, as Kubernetes does.
"""

import re
from functools import lru_cache

LARGEST = (1 << 63) - 1
"""The largest amount that there is, of whole units and of thousandths."""

_BINARY = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_PATTERN = re.compile(
    r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:(Ki|Mi|Gi|Ti|Pi|Ei)|([eE][+-]?[0-9]+)|([numkMGTPE]))?", re.ASCII
)
_LONGEST = 200
"""Characters of a quantity: nobody needs more, and integers of thousands of digits are no longer cheap."""


class QuantityError(ValueError):
    """A text or number that is no Kubernetes quantity."""


def parse_quantity(value: str | int | float) -> int:
    """Whole units of ``value``, rounded up: ``"1.5Gi"`` → 1610612736, ``"100m"`` → 1. At most LARGEST.

    Raises QuantityError when ``value`` is no quantity.
    """
    return _capped(_scaled(value, 0))


def parse_milli(value: str | int | float) -> int:
    """Thousandths of ``value``, rounded up: ``"100m"`` → 100, ``0.5`` → 500, ``2`` → 2000."""
    return _capped(_scaled(value, 3))


def parse_nano(value: str | int | float) -> int:
    """Billionths of ``value``, the finest unit that a quantity has: for comparing two quantities exactly."""
    return _scaled(value, 9)


def format_quantity(amount: int, *, milli: bool = False, binary: bool = False) -> str:
    """``amount`` in the shortest canonical form; ``milli`` says that it counts thousandths, ``binary`` prefers Ki … Ei."""
    if milli:
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if binary and amount:
        for suffix, factor in reversed(_BINARY.items()):
            if amount % factor == 0:
                return f"{amount // factor}{suffix}"
    return str(amount)


def _capped(amount: int) -> int:
    return max(-LARGEST, min(amount, LARGEST))


def _scaled(value: str | int | float, power: int) -> int:
    if isinstance(value, bool):
        raise QuantityError(f"{value!r} is not a quantity such as 500m, 2 or 1.5Gi")
    if isinstance(value, int):
        return int(value * 10**power)
    if isinstance(value, float):
        value = repr(value)
    if not isinstance(value, str) or len(value) > _LONGEST:
        shown = value[:20] + "…" if isinstance(value, str) else value
        raise QuantityError(f"{shown!r} is not a quantity such as 500m, 2 or 1.5Gi")
    return _parse(value, power)


@lru_cache(maxsize=8192)
def _parse(text: str, power: int) -> int:
    match = _PATTERN.fullmatch(text)
    if match is None or not (match[2] or match[3]):
        raise QuantityError(f"{text!r} is not a quantity such as 500m, 2 or 1.5Gi")
    sign, whole, fraction, binary, exponent, suffix = match.groups()
    fraction = fraction or ""
    digits = int((whole or "0") + fraction)
    shift = power - len(fraction)
    if binary:
        digits *= _BINARY[binary]
    else:
        shift += int(exponent[1:]) if exponent else _DECIMAL[suffix or ""]
    if shift > 60:
        raise QuantityError(f"{text!r} is out of range")
    # Finer than all digits together is rounded up to one unit, without a power of ten of any size.
    amount = int(digits * 10**shift if shift >= 0 else -(-digits // 10 ** min(-shift, _LONGEST)))
    return -amount if sign == "-" else amount
