"""How best effort fared in the last rounds: what it was held to, asked for and used, and what the whole node used."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

LONGEST_MS = 600_000


class Round(NamedTuple):
    """One round with a fresh sample; amounts in milli-cores."""

    at: int
    limit: int
    requested: int
    used: int
    node: int


History = tuple[Round, ...]
"""The oldest round first."""

_AT = attrgetter("at")


def grown(history: History, newest: Round | None, now: int, window_ms: int) -> History:
    """``history`` with the newest round, without what is older than the window; all of it, if the clock has jumped."""
    oldest = now - min(window_ms, LONGEST_MS)
    kept = history[bisect_right(history, oldest, key=_AT) : bisect_left(history, now, key=_AT)]
    return (*kept, newest) if newest is not None else kept


def within(history: History, now: int, window_ms: int) -> Sequence[Round]:
    """The rounds of the last ``window_ms``."""
    return history[bisect_right(history, now - window_ms, key=_AT) :]


def mean(amounts: Sequence[int]) -> int:
    """The mean, rounded down; 0 of nothing."""
    return sum(amounts) // len(amounts) if amounts else 0
