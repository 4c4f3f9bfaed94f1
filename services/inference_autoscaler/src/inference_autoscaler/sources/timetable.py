"""When each source is asked next: at whole multiples of its interval, moved so that not all are asked at one moment."""

import zlib
from dataclasses import dataclass

LONGEST_REST_MS = 60_000
"""A source that fails is asked less and less often, but no less often than so, or than it would be anyhow."""
FIRST_SPREAD_MS = 1_000
"""Sources that become known together are first asked within so long; one alone at once."""


@dataclass(slots=True)
class Turn:
    """One source: how often it is to be asked, when next, and how often in a row it failed."""

    every_ms: int
    due: int
    failures: int = 0
    asking: bool = False


class Timetable:
    """The turns of all sources, by any name."""

    def __init__(self) -> None:
        self._turns: dict[str, Turn] = {}

    def keep(self, name: str, every_ms: int, now: int, spread_ms: int) -> None:
        """It is asked from ``now`` on, at this interval; for the first time within ``spread_ms``."""
        known = self._turns.get(name)
        if known is None:
            self._turns[name] = Turn(every_ms, now + _offset(name, spread_ms))
        elif known.every_ms != every_ms:
            known.every_ms, known.due = every_ms, min(known.due, now + every_ms)

    def drop(self, name: str) -> None:
        """It is asked no more."""
        self._turns.pop(name, None)

    def due(self, now: int) -> list[str]:
        """Whose turn it is: they are being asked until ``answered``."""
        found = sorted(name for name, turn in self._turns.items() if turn.due <= now and not turn.asking)
        for name in found:
            self._turns[name].asking = True
        return found

    def answered(self, name: str, now: int, *, failed: bool) -> None:
        """The source said something, or nothing."""
        turn = self._turns.get(name)
        if turn is None:
            return
        turn.asking, turn.failures = False, turn.failures + 1 if failed else 0
        rest = turn.every_ms
        if turn.failures > 1:
            rest = max(rest, min(LONGEST_REST_MS, turn.every_ms * 2 ** min(turn.failures - 1, 16)))
        offset = _offset(name, turn.every_ms)
        turn.due = (now + rest - offset) // turn.every_ms * turn.every_ms + offset
        turn.due += turn.every_ms if turn.due <= now else 0

    def counts(self) -> tuple[int, int]:
        """How many sources are asked, and how many of them said nothing the last time."""
        return len(self._turns), sum(turn.failures > 0 for turn in self._turns.values())

    def next_due(self) -> int | None:
        """When the next turn is, of those that are not being asked."""
        return min((turn.due for turn in self._turns.values() if not turn.asking), default=None)


def _offset(name: str, within_ms: int) -> int:
    return zlib.crc32(name.encode()) % within_ms
