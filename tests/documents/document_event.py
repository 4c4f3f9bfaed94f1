"""A decision as `docs/events.md` tells it."""

from dataclasses import dataclass, field

SUBJECT = "subject"
"""Stands for the kind of the object that a decision is about."""


@dataclass(frozen=True, slots=True)
class Event:
    """A decision. ``carries`` are its changes, ``VERB Kind``; ``payload`` is what it tells other services besides."""

    name: str
    service: str
    meaning: str
    carries: tuple[str, ...] = ()
    payload: str = ""
    heard_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """Decisions that belong together."""

    title: str
    events: tuple[Event, ...] = field(default=())
