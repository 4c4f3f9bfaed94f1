"""Putting aside what nobody can handle, with its error, so that the cluster goes on."""

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
    """Where the gateway puts messages and objects aside."""

    bus: Bus
    clock: Clock
    measures: Measures

    async def entry(self, source: str, entry: Entry, error: Exception) -> str:
        """Keep a message that cannot be read, with its error; returns the error as text."""
        log.exception("message_parked", extra={"source": source})
        text = f"{type(error).__name__}: {error}"
        await self._park(source, text, entry.payload)
        return text

    async def item(self, key: Key, text: str, item: Object | None) -> None:
        """Keep an object that no controller could make sense of, as it is now; it may be gone already."""
        log.error("object_parked", extra={"object": str(key), "detail": text})
        await self._park(str(key), text, orjson.dumps(item.manifest()) if item is not None else b"")

    async def _park(self, source: str, text: str, payload: bytes) -> None:
        self.measures.parked.inc()
        await self.bus.park(Parked(self.clock.now(), "cluster_gateway", source, text, payload))
