"""When it is written why somebody waits: a moment later, for most of those who wait find their place within it.

While the pods of a gang arrive, why it waits changes with each of them, and to write it costs a request for every pod that is
there. So it is written once, as it is then. Whoever asks is answered at once.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import takewhile

from gang_scheduler.domain.line.waiting_line import Unit, WaitingLine
from gang_scheduler.domain.turns.turn import Turn


@dataclass(slots=True)
class Tellings:
    """Whoever has something to be told is told ``after_ms`` later, the newest of it."""

    after_ms: int = 0
    _untold: dict[Unit, tuple[int, Turn]] = field(default_factory=dict)
    """Since when, the oldest first, and what was found last."""

    def __contains__(self, unit: Unit) -> bool:
        return unit in self._untold

    def put_off(self, turn: Turn, now: int) -> bool:
        """Whether what was found in ``turn`` is told later."""
        since = self._untold[turn.unit][0] if turn.unit in self._untold else now
        if since + self.after_ms <= now:
            self.forget(turn.unit)
            return False
        self._untold[turn.unit] = since, turn
        return True

    def due(self, now: int, line: WaitingLine, is_busy: Callable[[Unit], bool]) -> list[Turn]:
        """What is to be told now, of those that still wait. Who changed since or has a decision on its way is tried first."""
        ripe = takewhile(lambda entry: entry[1][0] + self.after_ms <= now, self._untold.items())
        told = []
        for unit, (_, turn) in list(ripe):
            self.forget(unit)
            if unit in line.ready or is_busy(unit):
                self._untold[unit] = now, turn
            elif unit in line:
                told.append(turn)
        return told

    def forget(self, unit: Unit) -> None:
        """There is nothing to tell any more."""
        self._untold.pop(unit, None)

    def deadline(self) -> int | None:
        """When the next one is due."""
        return next((since + self.after_ms for since, _ in self._untold.values()), None)
