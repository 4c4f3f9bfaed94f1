"""What one object became: the unit of a change set."""

from dataclasses import dataclass, field

from kube.keys import Key, Manifest


@dataclass(slots=True)
class Edit:
    """The parts of an object that are new (None: as before), or that it is gone. ``actor`` asked for it.

    ``node`` is the one that a pod is bound to from now on. An edit may grow until its change set is written.
    """

    key: Key
    uid: str
    metadata: Manifest | None = None
    body: Manifest | None = None
    status: Manifest | None = None
    node: str = ""
    fresh: bool = False
    removed: bool = False
    actor: str = ""
    place: int = field(default=-1, compare=False)
    """Its place in the draft that it grows in."""
