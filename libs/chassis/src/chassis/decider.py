"""The shell of a deciding service: reads facts, calls the pure core, commits what it decided."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import orjson

from bus import StaleWriter
from chassis.alarm import ticks
from chassis.core import Core, CoreFailed
from chassis.endings import end
from chassis.inquest import Inquest
from chassis.intake import Intake
from chassis.parking import Parking
from chassis.quarantine import Quarantine
from chassis.role import Role, Workplace
from chassis.term import Term
from tidegate import subjects

log = logging.getLogger(__name__)

LASTING_SECONDS = 60.0
"""A term that lasted so long ended by a new fault, not by the one that ended its predecessor."""
FIRST_REST, LONGEST_REST, LONGEST_STANDSTILL = 0.1, 5.0, 60.0
"""Seconds between short terms: where each sets something aside, and where nobody knows what is wrong."""


@dataclass(slots=True)
class Decider:
    """Runs the cores that ``make_core`` makes, one for each term of leadership.

    The lease says who should try to lead; the guard of the service's own log decides who does.

    A core that raises is thrown away, and its successor made from the facts. What it stumbled over is found by trying
    (`chassis.inquest`), parked with the error, and kept away for a while (`chassis.quarantine`); everything else is
    decided as before. If nothing is found, the successor begins after a pause that grows.
    """

    role: Role
    make_core: Callable[[], Core]
    workplace: Workplace
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    term: Term | None = None
    deciding: Core | None = None
    """The core of the present term, once it knows everything; None where another process leads, or between two terms."""

    quarantine: Quarantine = field(default_factory=Quarantine)

    async def run(self) -> None:
        """Lead whenever the lease is held, for ever."""
        service, bus = self.role.service, self.workplace.bus
        while True:
            lease = await bus.lease(service, self.workplace.holder)
            await lease.wait()
            telling = await bus.serve(subjects.question(service, "status"), self._status)
            leading = asyncio.create_task(self._lead(), name=f"{service} term")
            lost = asyncio.create_task(lease.lost(), name=f"{service} lease")
            try:
                await asyncio.wait({leading, lost}, return_when=asyncio.FIRST_COMPLETED)
                if leading.done():
                    leading.result()
            finally:
                self.ready.clear()
                await end(leading, lost)
                await telling.stop()
                await lease.release()

    async def _lead(self) -> None:
        """One term after the other, until another process leads; each that ends by a fault of its core is followed."""
        clock, failures, from_present = asyncio.get_running_loop().time, 0, False
        while True:
            began, term = clock(), self._new_term(from_present)
            try:
                await term.begin()
                self.deciding = term.core
                self.ready.set()
                self.quarantine.trouble = ""
                await term.go_on()
            except StaleWriter as stale:
                log.warning("leadership_lost", extra={"service": self.role.service, "detail": str(stale)})
                return
            except CoreFailed as failed:
                self.deciding = None
                await term.end()
                failures = 0 if clock() - began > LASTING_SECONDS else failures + 1
                explained = await self._contain(term.intake, failed)
                from_present = not explained
                if not explained:
                    self.ready.clear()
                    self.quarantine.trouble = f"nothing is decided: {failed}"
                await asyncio.sleep(_pause(failures, LONGEST_REST if explained else LONGEST_STANDSTILL))
            finally:
                self.deciding = None
                await term.end()

    def _new_term(self, from_present: bool) -> Term:
        told = self.term.intake.told if self.term is not None else {}
        self.term = Term(
            self.role, self.workplace, self.make_core(), self.quarantine, told=told, from_present=from_present
        )
        return self.term

    async def _contain(self, intake: Intake, failed: CoreFailed) -> bool:
        """Keep what the core stumbled over away from its successor; whether it was found."""
        text = str(failed)
        log.error("core_failed", extra={"service": self.role.service, "detail": text}, exc_info=failed.error)
        if failed.entry is not None:
            self.quarantine.entries[failed.source, failed.entry.sequence] = text
            source = f"{subjects.decisions(failed.source)}/{failed.entry.sequence}"
            await self._park(failed.now, source, text, failed.entry.payload)
            return True
        inquest = Inquest(
            self.make_core,
            intake.fold.store,
            intake.private,
            [(service, decision) for (service, _), decision in intake.told.items()],
            frozenset(intake.in_flight) | {key for key, _ in self.quarantine.resting()},
            self.quarantine.hidden(),
            failed.now,
            self.quarantine.released(),
        )
        culprits = await asyncio.get_running_loop().run_in_executor(None, inquest.culprits)
        for item, error, hidden in culprits:
            words = f"{type(error).__name__}: {error}"
            self.quarantine.isolate(item, words, ticks(), failed.now, hidden=hidden)
            await self._park(failed.now, str(item.key), words, orjson.dumps(item.manifest()))
        if not culprits and text not in self.quarantine.trouble:
            await self._park(failed.now, self.role.service, text, b"")
        return bool(culprits)

    async def _park(self, at_ms: int, source: str, text: str, payload: bytes) -> None:
        log.error("set_aside", extra={"service": self.role.service, "source": source, "detail": text})
        work = self.workplace
        await Parking(self.role.service, work.bus, work.clock, work.measures).keep(source, text, payload, at_ms)

    async def _status(self, _: bytes) -> bytes:
        """How this service is: what keeps it from deciding, and what it keeps aside."""
        return orjson.dumps(self.quarantine.report(ticks()))


def _pause(failures: int, longest: float) -> float:
    """Seconds before the next term, the number of short ones in a row before it given."""
    return min(longest, FIRST_REST * 2 ** min(failures - 2, 16)) if failures > 1 else 0.0
