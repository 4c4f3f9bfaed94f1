"""The values of expressions that Python has no type for, and what can be done with them."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import total_ordering
from typing import Any, NamedTuple

from gang_scheduler.domain.dra.cel_syntax import CelError
from resources import QuantityError, parse_milli

_LONGEST_PATTERN = 200
_NESTED = re.compile(r"[*+}]\)*[*+{]|\([^()]*[*+|{][^()]*\)[*+{]")
_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?")


class Quantity(NamedTuple):
    """An amount in thousandths."""

    milli: int


@total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    """A version of semver.org. ``release`` is empty for a final version, which is newer than those before it."""

    numbers: tuple[int, ...]
    release: str = ""

    def __lt__(self, other: "Version") -> bool:
        return self._key() < other._key()

    def _key(self) -> tuple[Any, ...]:
        parts = [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in self.release.split(".")]
        return self.numbers, not self.release, parts


class Maybe(NamedTuple):
    """A value that may not be there."""

    there: bool
    value: Any = None


def quantity(text: Any) -> Quantity:
    """``"40Gi"`` as an amount; raises CelError."""
    try:
        return Quantity(parse_milli(text))
    except QuantityError as error:
        raise CelError(str(error)) from None


def version(text: Any) -> Version:
    """``"12.4.0"`` as a version; raises CelError."""
    match = _VERSION.fullmatch(str(text))
    if match is None:
        raise CelError(f"{text!r} is no version like 1.2.3")
    return Version(tuple(int(number) for number in match.groups()[:3]), match[4] or "")


def matches(text: str, pattern: str) -> bool:
    """Whether the pattern occurs. Patterns that could take for ever (repetitions of repetitions) are refused."""
    if len(pattern) > _LONGEST_PATTERN or _NESTED.search(pattern):
        raise CelError(f"pattern {pattern!r} is too long or repeats what repeats")
    try:
        return re.search(pattern, text) is not None
    except re.error as error:
        raise CelError(f"pattern {pattern!r}: {error}") from None


def _readable(read: Callable[[Any], object], text: Any) -> bool:
    try:
        read(text)
    except CelError:
        return False
    return True


def _compared(left: Any, right: Any) -> int:
    if type(left) is not type(right):
        raise CelError(f"{left!r} and {right!r} cannot be compared")
    return int(left > right) - int(left < right)


def _whole(value: Any) -> int:
    if isinstance(value, Quantity):
        if value.milli % 1000:
            raise CelError(f"{value.milli}m is not whole")
        whole: int = value.milli // 1000
        return whole
    return int(value)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "quantity": quantity,
    "isQuantity": lambda text: _readable(quantity, text),
    "semver": version,
    "isSemver": lambda text: _readable(version, text),
    "size": len,
    "string": lambda value: ("true" if value else "false") if isinstance(value, bool) else str(value),
    "int": _whole,
    "double": float,
    "type": lambda value: type(value).__name__,
}

METHODS: dict[str, Callable[..., Any]] = {
    "compareTo": _compared,
    "isGreaterThan": lambda left, right: _compared(left, right) > 0,
    "isLessThan": lambda left, right: _compared(left, right) < 0,
    "asInteger": _whole,
    "isInteger": lambda value: value.milli % 1000 == 0,
    "sign": lambda value: _compared(value, Quantity(0)),
    "add": lambda left, right: Quantity(left.milli + (right.milli if isinstance(right, Quantity) else 1000 * right)),
    "sub": lambda left, right: Quantity(left.milli - (right.milli if isinstance(right, Quantity) else 1000 * right)),
    "major": lambda value: value.numbers[0],
    "minor": lambda value: value.numbers[1],
    "patch": lambda value: value.numbers[2],
    "size": len,
    "startsWith": lambda text, start: text.startswith(start),
    "endsWith": lambda text, end: text.endswith(end),
    "contains": lambda text, part: part in text,
    "matches": matches,
    "lowerAscii": lambda text: text.lower(),
    "upperAscii": lambda text: text.upper(),
    "trim": lambda text: text.strip(),
    "split": lambda text, separator: text.split(separator),
    "replace": lambda text, old, new: text.replace(old, new),
    "substring": lambda text, *ends: text[slice(*ends) if len(ends) > 1 else slice(ends[0], None)],
    "indexOf": lambda text, part: text.find(part),
    "orValue": lambda maybe, other: maybe.value if maybe.there else other,
    "hasValue": lambda maybe: maybe.there,
}
