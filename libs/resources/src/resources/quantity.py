"""Kubernetes quantities (``100m``, ``1e3``, ``1.5Gi``, ``0.5``) as exact integers.

The grammar is that of ``k8s.io/apimachinery/pkg/api/resource``: a signed decimal number followed by a binary suffix
(Ki … Ei), a decimal suffix (n, u, m, k, M, G, T, P, E) or a decimal exponent (e3, E3). What is finer than the unit asked
for is rounded up, away from zero, as Kubernetes does.
"""

import re
from functools import lru_cache

NANO = 1_000_000_000

_BINARY = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_PATTERN = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?(?:(Ki|Mi|Gi|Ti|Pi|Ei)|([eE][+-]?\d+)|([numkMGTPE]))?")


class QuantityError(ValueError):
    """A text or number that is no Kubernetes quantity."""


def parse_quantity(value: str | int | float) -> int:
    """Whole units of ``value``, rounded up: ``"1.5Gi"`` → 1610612736, ``"100m"`` → 1.

    Raises QuantityError when ``value`` is no quantity.
    """
    return _scaled(value, 0)


def parse_milli(value: str | int | float) -> int:
    """Thousandths of ``value``, rounded up: ``"100m"`` → 100, ``0.5`` → 500, ``2`` → 2000."""
    return _scaled(value, 3)


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


def _scaled(value: str | int | float, power: int) -> int:
    if isinstance(value, bool):
        raise QuantityError(f"{value!r} is not a quantity such as 500m, 2 or 1.5Gi")
    if isinstance(value, int):
        return int(value * 10**power)
    return _parse(repr(value) if isinstance(value, float) else value, power)


@lru_cache(maxsize=8192)
def _parse(text: str, power: int) -> int:
    match = _PATTERN.fullmatch(text.strip()) if isinstance(text, str) else None
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
    if abs(shift) > 60:
        raise QuantityError(f"{text!r} is out of range")
    amount = int(digits * 10**shift if shift >= 0 else -(-digits // 10**-shift))
    return -amount if sign == "-" else amount
