"""Following the facts without deciding anything: a state as of now, for whoever answers from it."""

import logging
from collections.abc import AsyncIterator

from bus import Bus, Entry, Parked
from chassis.fact_fold import FactFold, Folded, load
from kube import Event
from tidegate import subjects
from tidegate.codec import facts

_log = logging.getLogger(__name__)


class FactFollower:
    """The fold of the facts of one reader; one entry that cannot be read is parked, and hides nothing that comes after it."""

    def __init__(self, service: str, bus: Bus, interest: facts.Interest | None = None) -> None:
        self._service, self._bus, self._interest = service, bus, interest
        self._log = bus.log(subjects.FACTS)
        self.fold = FactFold(interest)
        self._goal = 0

    @property
    def has_caught_up(self) -> bool:
        """Whether everything is read that there was when it began."""
        return self.fold.revision >= self._goal

    async def begin(self) -> list[Event]:
        """Start from the newest snapshot; what is in there."""
        self.fold, events = await load(self._log, interest=self._interest)
        self._goal = await self._log.last()
        return events

    def read(self) -> AsyncIterator[list[Entry]]:
        """What comes after that, in batches of what has come together; ``take`` folds it."""
        return self._log.read(self.fold.revision)

    async def take(self, entry: Entry) -> Folded | None:
        """Fold one entry; None where it brought nothing."""
        try:
            return self.fold.take(entry)
        except Exception as error:
            where = f"{subjects.FACTS}/{entry.sequence}"
            _log.exception("message_parked", extra={"source": where})
            text = f"{type(error).__name__}: {error}"
            await self._bus.park(Parked(entry.at_ms, self._service, where, text, entry.payload))
            return None
