"""A kind as `docs/supported-kinds.md` tells it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Support:
    """One kind. ``actors`` are the services that act on it."""

    kind: str
    actors: tuple[str, ...]
    honoured: str
    idle: str = ""
