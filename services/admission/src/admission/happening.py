"""Something that was done to the objects of the cluster, and by whom."""

from dataclasses import dataclass

from kube import Key


@dataclass(slots=True)
class Happening:
    """One decision or write, and whether it was carried out; None while that is not known."""

    at_ms: int
    source: str
    name: str
    reason: str
    message: str
    about: Key
    applied: bool | None = None
    revision: int = 0
    id: str = ""
