"""Putting aside what nobody can handle, with its error, so that everything else goes on."""

import logging
from dataclasses import dataclass

import orjson

from bus import Bus, Entry, Parked
from chassis.clock import Clock
from chassis.measures import Measures
from kube import Key, Object

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Parking:
    """Where ``service`` puts messages and objects aside."""

    service: str
    bus: Bus
    clock: Clock
    measures: Measures

    async def entry(self, source: str, entry: Entry, error: Exception) -> str:
        """Keep a message that cannot be read, with its error; returns the error as text."""
        log.error("message_parked", extra={"service": self.service, "source": source}, exc_info=error)
        text = f"{type(error).__name__}: {error}"
        await self.keep(source, text, entry.payload)
        return text

    async def item(self, key: Key, text: str, item: Object | None) -> None:
        """Keep an object that nobody could make sense of, as it is now; it may be gone already."""
        log.error("object_parked", extra={"service": self.service, "object": str(key), "detail": text})
        await self.keep(str(key), text, orjson.dumps(item.manifest()) if item is not None else b"")

    async def keep(self, source: str, text: str, payload: bytes, at_ms: int | None = None) -> None:
        """Keep ``payload``, which came from ``source``, with the error ``text``; ``at_ms`` is now unless given."""
        self.measures.parked.inc()
        when = self.clock.now() if at_ms is None else at_ms
        await self.bus.park(Parked(when, self.service, source, text, payload))
