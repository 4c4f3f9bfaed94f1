"""How best effort fared in the last rounds: what it was held to, asked for and used, and what the whole node used."""

from collections.abc import Sequence
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


def grown(history: History, newest: Round | None, now: int, window_ms: int) -> History:
    """``history`` with the newest round, without what is older than the window; all of it, if the clock has jumped."""
    oldest = now - min(window_ms, LONGEST_MS)
    kept = [one for one in history if oldest < one.at < now]
    return (*kept, newest) if newest is not None else tuple(kept)


def within(history: History, now: int, window_ms: int) -> Sequence[Round]:
    """The rounds of the last ``window_ms``."""
    return [one for one in history if one.at > now - window_ms]


def mean(amounts: Sequence[int]) -> int:
    """The mean, rounded down; 0 of nothing."""
    return sum(amounts) // len(amounts) if amounts else 0
