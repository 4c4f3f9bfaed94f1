"""What a deciding service is, and where it is at work."""

import asyncio
from dataclasses import dataclass, field

from bus import Bus
from chassis.clock import Clock
from chassis.measures import Measures
from chassis.tracing import NoTracer, Tracer
from tidegate.codec.facts import Interest


@dataclass(frozen=True, slots=True)
class Role:
    """What a deciding service is wherever it runs: live, in virtual time, and when a decision is made again.

    ``inputs`` are the services whose decisions it hears. ``queries`` are the questions that it answers on the bus. Objects
    that do not meet ``interest`` when they are born are never shown to it.
    """

    service: str
    inputs: tuple[str, ...] = ()
    queries: tuple[str, ...] = ("explain",)
    interest: Interest | None = None
    history: int = 50_000
    """How many commits of its own it keeps behind those that were carried out, to be explained and replayed."""


def open_gate() -> asyncio.Event:
    """A gate that lets everything pass."""
    gate = asyncio.Event()
    gate.set()
    return gate


@dataclass(frozen=True, slots=True)
class Workplace:
    """What a service works with, and the name it goes by. While ``gate`` is not set nothing is decided."""

    bus: Bus
    clock: Clock
    measures: Measures
    tracer: Tracer = field(default_factory=NoTracer)
    holder: str = "only"
    gate: asyncio.Event = field(default_factory=open_gate)
