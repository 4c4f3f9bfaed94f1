"""Comparing what was wanted with what is there: quantities by value, lists as alternatives, ranges, parts of a whole."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from resources import QuantityError, parse_nano
from testing.scenarios.errors import ScenarioError


def same(wanted: Any, got: Any) -> bool:
    """Whether both say the same; ``1000m``, ``1`` and 1.0 do, ``true`` and ``"true"`` do not."""
    if isinstance(wanted, bool) or isinstance(got, bool):
        return wanted is got
    if isinstance(wanted, dict) and isinstance(got, dict):
        return wanted.keys() == got.keys() and all(same(value, got[name]) for name, value in wanted.items())
    if isinstance(wanted, list) and isinstance(got, list):
        return len(wanted) == len(got) and all(same(a, b) for a, b in zip(wanted, got, strict=True))
    if wanted == got:
        return True
    left, right = nano(wanted), nano(got)
    return left is not None and left == right


def any_of(wanted: Any, got: Any) -> bool:
    """Whether ``got`` is what is wanted, or one of what is wanted where that is a list."""
    return same(wanted, got) or (isinstance(wanted, list) and any(same(one, got) for one in wanted))


def holds(wanted: Any, got: Any) -> bool:
    """``contains``: a text holds a text; a list holds such an element, of which a mapping names only some keys."""
    if isinstance(got, str):
        return isinstance(wanted, str) and wanted in got
    if isinstance(got, list):
        return any(_covers(wanted, element) for element in got)
    return isinstance(got, dict) and _covers(wanted, got)


def _covers(wanted: Any, got: Any) -> bool:
    if isinstance(wanted, dict) and isinstance(got, dict):
        return all(name in got and _covers(value, got[name]) for name, value in wanted.items())
    return same(wanted, got)


def nano(value: Any) -> int | None:
    """The billionths of a number or quantity; None for what is neither."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return parse_nano(value)
    except QuantityError:
        return None


@dataclass(frozen=True, slots=True)
class Range:
    """A whole number that is wanted, or the bounds of one, both included."""

    minimum: int | None = None
    maximum: int | None = None

    def __contains__(self, number: int) -> bool:
        above = self.minimum is None or number >= self.minimum
        return above and (self.maximum is None or number <= self.maximum)

    def __str__(self) -> str:
        if self.minimum == self.maximum:
            return str(self.minimum)
        bounds = [f"at least {self.minimum}"] if self.minimum is not None else []
        return " and ".join(bounds + ([f"at most {self.maximum}"] if self.maximum is not None else []))


def parse_range(value: Any) -> Range:
    """A number, or ``{min, max}``; raises ScenarioError when it is neither."""
    if isinstance(value, Mapping):
        unknown = sorted(value.keys() - {"min", "max"})
        bounds = [value.get("min"), value.get("max")]
        if unknown or not value or not all(bound is None or _is_count(bound) for bound in bounds):
            raise ScenarioError(f"{dict(value)!r} is no range; write a number or {{min, max}}")
        return Range(*bounds)
    if not _is_count(value):
        raise ScenarioError(f"{value!r} is no whole number; write a number or {{min, max}}")
    return Range(value, value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
