"""What a service decides, in one small language of changes that every cluster side can carry out.

A decision is named in the past tense for what was decided (``GangPlaced``); its mutations say what has to become of
which objects. They are plain data: the pure core of a service makes them, its shell turns them into messages.
"""

from dataclasses import dataclass, field
from enum import IntEnum

from kube.keys import Key, Manifest


class Verb(IntEnum):
    """What is to happen to one object."""

    CREATE = 1
    """Make the object of ``manifest``; nothing happens when an object of its key and owner is there already."""
    PATCH = 2
    """Lay ``patch`` over metadata and body (merge patch)."""
    STATUS = 3
    """Lay ``patch`` over the status (merge patch, conditions by type)."""
    DELETE = 4
    """Delete it and what it owns; a running pod gets its grace period first."""
    BIND = 5
    """Give a pod its ``node`` and ``devices``."""
    EVICT = 6
    """Delete a pod that runs, against its will, for the decision's reason."""


@dataclass(slots=True)
class Mutation:
    """One change to one object. ``uid`` is of the object that it means: another object of the same name stays untouched.

    Never changed after it was made. It is not frozen because many are made, and a frozen one takes three times as long.
    """

    verb: Verb
    key: Key
    uid: str = ""
    manifest: Manifest | None = None
    patch: Manifest | None = None
    node: str = ""
    devices: Manifest | None = None
    grace_seconds: int | None = None


@dataclass(slots=True)
class Decision:
    """Something that was decided about ``subject``. Never changed after it was made, as mutations are not.

    ``reason`` is the stable CamelCase word, ``message`` the sentence for people, with names and numbers. The decision
    holds as a whole while ``subject`` (of ``subject_uid``) and, except for their status, the objects that it touches are
    as they were when it was made; the cluster side refuses it otherwise. ``payload`` is for other services.
    """

    name: str
    subject: Key
    subject_uid: str = ""
    reason: str = ""
    message: str = ""
    mutations: tuple[Mutation, ...] = ()
    payload: Manifest | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a decision: applied, or refused with the reasons by key ("" stands for the decision as a whole)."""

    decision_id: str
    name: str
    subject: Key
    applied: bool
    reasons: dict[str, str] = field(default_factory=dict)
