"""One thing that somebody should know before Tidegate takes a cluster's objects over."""

from dataclasses import dataclass
from enum import IntEnum


class Level(IntEnum):
    """How much it matters, most first."""

    CONFLICT = 0
    """Two would act on the same objects, or an object would be refused: to be settled before the switch."""
    DIFFERS = 1
    """It is taken, and means something else here."""
    NOTE = 2
    """It has no effect here, or is good to know."""


@dataclass(frozen=True, slots=True)
class Finding:
    """``subject`` is what it is about, ``text`` what is so, ``advice`` the way out where there is one.

    ``objects`` are the objects concerned, as ``kind/namespace/name``, where there are several.
    """

    level: Level
    subject: str
    text: str
    advice: str = ""
    objects: tuple[str, ...] = ()
