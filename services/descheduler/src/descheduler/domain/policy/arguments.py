"""Reading arguments as upstream writes them: closed sets of keys, durations, percentages, integers or percentages."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from kube import Manifest, parse_duration

PERCENT = 1000
"""Shares are whole thousandths of a percent: no rounding of binary fractions decides anything."""

FULL = 100 * PERCENT


class Share(NamedTuple):
    """A number, or a share of another one in percent."""

    amount: int
    is_percent: bool

    def of(self, whole: int) -> int:
        """The share of ``whole``, rounded down, at least 1 and at most all of it."""
        found = whole * self.amount // 100 if self.is_percent else self.amount
        return min(max(1, found), whole)


def known(given: Manifest, names: Iterable[str], what: str) -> None:
    """Raise ValueError where ``given`` has a key that ``what`` does not know."""
    strangers = sorted(set(given) - set(names))
    if strangers:
        raise ValueError(f"{what} knows no {', '.join(strangers)}; there are {', '.join(sorted(names))}")


def percentages(given: Mapping[str, Any] | None) -> dict[str, int]:
    """Thresholds by resource in thousandths of a percent. Raises ValueError outside 0 to 100."""
    return {name: _percentage(name, value) for name, value in sorted((given or {}).items())}


def _percentage(name: str, value: Any) -> int:
    try:
        found = Fraction(str(value).removesuffix("%"))
    except ValueError:
        raise ValueError(f"the threshold of {name} is {value!r}, which is no percentage") from None
    if not 0 <= found <= 100:
        raise ValueError(f"the threshold of {name} is {value}, which is not from 0 to 100")
    return int(found * PERCENT)


def span(value: Any, default_ms: int) -> int:
    """A duration as text (``5m``) or in seconds, in milliseconds. Raises ValueError."""
    if value is None:
        return default_ms
    return parse_duration(value) if isinstance(value, str) else 1000 * int(value)


def share(value: Any) -> Share | None:
    """``3`` or ``"10%"``; None where nothing is given. Raises ValueError."""
    if value is None:
        return None
    text = str(value)
    return Share(int(text.removesuffix("%")), text.endswith("%"))


def optional_count(value: Any) -> int | None:
    """A limit; None, which 0 and less are as well, for none."""
    return int(value) if value is not None and int(value) > 0 else None
