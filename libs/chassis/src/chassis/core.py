"""What the chassis asks of the pure core of a deciding service."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol, runtime_checkable

from bus import Entry
from kube import Decision, Event, Key, Manifest, Outcome, Store


class Core(Protocol):
    """A fold and a function: facts come in, decisions come out. No clock, no I/O, no randomness.

    All times are milliseconds since the epoch and come in as arguments. A core that raises anywhere but in ``query`` is
    thrown away, and another one made from the facts.
    """

    def fold(self, events: Sequence[Event], now: int) -> None:
        """Take in what one change set changed; ``now`` is when it became a fact. Called for every fact, in order.

        Also called once at the start with every object of the snapshot (``old`` is None).
        """

    def hear(self, service: str, decision: Decision) -> None:
        """Take in a decision of another service (only of those that the service names as inputs).

        At the start of a term a service hears itself, too: the newest of its own decisions of which only that counts.
        """

    def assume(self, decision_id: str, decision: Decision) -> None:
        """Count an own decision as done until its outcome comes: right after it was made, and again after a restart."""

    def settle(self, outcome: Outcome) -> None:
        """An own decision has come to its outcome. What it changed was folded just before.

        An outcome without a decision says that its subject was left alone for a while, and is not any more.
        """

    def decide(self, now: int, in_flight: AbstractSet[Key]) -> list[Decision]:
        """All that should happen now. ``in_flight`` are the subjects of own decisions that have no outcome yet."""

    def deadline(self) -> int | None:
        """When decide() has to be called again although no fact arrives by then; None for never."""

    def query(self, name: str, arguments: Manifest) -> Manifest:
        """Answer a question (``explain``, for instance) from the present state, which stays as it is.

        Raises KeyError for an unknown one.
        """

    def check(self) -> list[str]:
        """The invariants of the state that do not hold, in words; empty when all is well. For tests."""


@runtime_checkable
class Remembering(Protocol):
    """A core with private state that no fact tells. It is committed in the same message as the decisions it belongs to."""

    def remember(self) -> bytes | None:
        """The whole private state if it changed since the last call, else None. Called after each decide()."""

    def restore(self, content: bytes) -> None:
        """Take up the state of the last commit that had one; called before the first fold()."""


@runtime_checkable
class Piecemeal(Protocol):
    """Like Remembering, for a state that is large and changes in few places at a time: it is kept in parts that have names."""

    def remember_parts(self) -> Mapping[str, bytes]:
        """The parts that changed since the last call; an empty text where there is no such part any more."""

    def restore_parts(self, parts: Mapping[str, bytes]) -> None:
        """Take up all parts as they were committed last; called before the first fold()."""


@runtime_checkable
class Reading(Protocol):
    """A core that looks objects up in the fold of the facts, and so needs no copy of it."""

    def read_from(self, store: Store) -> None:
        """Where the facts are folded; called before the first fold(). What fold() tells of is in there by then."""


@runtime_checkable
class Confiding(Protocol):
    """A core that goes on by itself past objects that it can make nothing of, and says which these are."""

    def take_failures(self) -> dict[Key, str]:
        """The objects that failed since the last call, each with the error. Called after each decide()."""


class CoreFailed(Exception):
    """A core raised: its state may be torn. ``source`` and ``entry`` are what it was given, if that is an entry of a log."""

    def __init__(self, error: Exception, now: int, source: str = "", entry: Entry | None = None) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.error, self.now, self.source, self.entry = error, now, source, entry
