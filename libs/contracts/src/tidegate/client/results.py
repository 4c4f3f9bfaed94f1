"""What the server answers, as plain values."""

from collections.abc import Iterable
from dataclasses import dataclass

from kube import Key, Manifest
from tidegate.client.errors import Refused


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """Why a field was refused: its path (``spec.tasks[0].replicas``), its value as text, and the rule that it breaks."""

    path: str
    value: str
    rule: str

    def __str__(self) -> str:
        return f"{self.path}: {self.value}: {self.rule}" if self.value else f"{self.path}: {self.rule}"


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of one object.

    ``outcome`` is ``created``, ``configured``, ``unchanged``, ``deleted`` or ``refused``; ``revision`` is one that holds
    the change: hand it to a read as ``at_least_revision`` to see it.
    """

    key: Key
    outcome: str
    errors: tuple[FieldProblem, ...] = ()
    warnings: tuple[str, ...] = ()
    message: str = ""
    uid: str = ""
    revision: int = 0

    @property
    def refused(self) -> bool:
        return self.outcome == "refused"

    @property
    def missing(self) -> bool:
        """Whether a deletion was refused because there is no such object."""
        return self.refused and not self.errors and self.message.endswith("not found")


def accepted(results: Iterable[Applied]) -> list[Applied]:
    """The results, if nothing was refused; else raises Refused with every reason."""
    listed = list(results)
    reasons = [
        one.message or "; ".join(map(str, one.errors)) or f"{one.key} is refused" for one in listed if one.refused
    ]
    if reasons:
        raise Refused("\n".join(reasons))
    return listed


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list. ``token`` asks for the next part; empty at the end."""

    manifests: tuple[Manifest, ...]
    token: str
    revision: int


@dataclass(frozen=True, slots=True)
class Change:
    """What a watch sees: ``added``, ``modified`` or ``deleted``, or ``bookmark``, which has a revision only.

    A watch from revision 0 gives what there is as ``added``, then a bookmark, then what changes.
    """

    type: str
    manifest: Manifest
    revision: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an object waits, or where it went: in words, a line each, and all of it as data."""

    lines: tuple[str, ...]
    details: Manifest


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that was decided at ``at_ms`` (since the epoch), and whether the cluster did it."""

    at_ms: int
    source: str
    name: str
    reason: str
    message: str
    about: Key
    applied: bool
    revision: int
    id: str = ""


@dataclass(frozen=True, slots=True)
class ServiceState:
    """One service. ``position`` is how far its decisions were carried out."""

    name: str
    ready: bool
    message: str
    position: int


@dataclass(frozen=True, slots=True)
class SystemStatus:
    """The whole system. ``objects`` counts the objects of each kind with group."""

    revision: int
    version: str
    objects: dict[str, int]
    services: tuple[ServiceState, ...]


@dataclass(frozen=True, slots=True)
class User:
    """Who the caller is. ``namespaces`` may be written, ``reads`` read; ``*`` stands for all."""

    name: str
    namespaces: tuple[str, ...]
    reads: tuple[str, ...] = ("*",)
