"""The shell of a deciding service: reads facts, calls the pure core, commits what it decided."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from bus import Bus, StaleWriter
from chassis.clock import Clock
from chassis.core import Core
from chassis.endings import end
from chassis.measures import Measures
from chassis.term import Term
from chassis.tracing import Tracer
from tidegate.codec.facts import Interest

log = logging.getLogger(__name__)


def open_gate() -> asyncio.Event:
    """A gate that lets everything pass."""
    gate = asyncio.Event()
    gate.set()
    return gate


@dataclass(slots=True)
class Decider:
    """Runs the cores that ``make_core`` makes, one for each term of leadership.

    ``inputs`` are the services whose decisions the core hears. ``queries`` are the questions that the core answers on
    the bus. Objects that do not meet ``interest`` when they are born are never shown to the core. While ``gate`` is not
    set nothing is decided. The lease says who should try to lead; the guard of the service's own log decides who does.
    """

    service: str
    make_core: Callable[[], Core]
    bus: Bus
    clock: Clock
    inputs: tuple[str, ...] = ()
    queries: tuple[str, ...] = ("explain",)
    interest: Interest | None = None
    tracer: Tracer | None = None
    holder: str = "only"
    measures: Measures | None = None
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    gate: asyncio.Event = field(default_factory=open_gate)
    term: Term | None = None

    async def run(self) -> None:
        """Lead whenever the lease is held, for ever."""
        measures = self.measures or Measures(self.service)
        while True:
            lease = await self.bus.lease(self.service, self.holder)
            await lease.wait()
            self.term = Term(
                self.service,
                self.make_core(),
                self.bus,
                self.clock,
                self.inputs,
                self.queries,
                self.holder,
                measures,
                self.gate,
                interest=self.interest,
                tracer=self.tracer,
            )
            leading = asyncio.create_task(self._lead(self.term), name=f"{self.service} term")
            lost = asyncio.create_task(lease.lost(), name=f"{self.service} lease")
            try:
                await asyncio.wait({leading, lost}, return_when=asyncio.FIRST_COMPLETED)
                if leading.done():
                    leading.result()
            finally:
                self.ready.clear()
                await end(leading, lost)
                await lease.release()

    async def _lead(self, term: Term) -> None:
        try:
            await term.begin()
            self.ready.set()
            await term.go_on()
        except StaleWriter as stale:
            log.warning("leadership_lost", extra={"service": self.service, "detail": str(stale)})
        finally:
            await term.end()
