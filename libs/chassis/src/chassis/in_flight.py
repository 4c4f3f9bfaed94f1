"""Own decisions whose outcome has not come yet, and subjects whose decisions keep being refused."""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import TypeVar

from kube import Decision, Key, Outcome

T = TypeVar("T")

FREE_TRIES = 3
FIRST_PAUSE_MS = 100
LONGEST_PAUSE_MS = 5_000


class InFlight(AbstractSet[Key]):
    """The subjects on which nothing new is to be decided now.

    A refused decision is made again at once, as what it missed has been read by then; a subject that is refused over
    and over is left alone for a while that doubles each time.
    """

    def __init__(self) -> None:
        self._subjects: dict[str, Key] = {}
        self._counts: dict[Key, int] = {}
        self._refusals: dict[Key, int] = {}
        self._resting: dict[Key, int] = {}

    def add(self, decision_id: str, decision: Decision) -> None:
        self._subjects[decision_id] = decision.subject
        self._counts[decision.subject] = self._counts.get(decision.subject, 0) + 1

    def settle(self, outcome: Outcome, now: int) -> bool:
        """Take an outcome; whether the decision was one of these."""
        subject = self._subjects.pop(outcome.decision_id, None)
        if subject is None:
            return False
        self._counts[subject] -= 1
        if not self._counts[subject]:
            del self._counts[subject]
        if outcome.applied:
            self._refusals.pop(subject, None)
            return True
        refusals = self._refusals[subject] = self._refusals.get(subject, 0) + 1
        if refusals >= FREE_TRIES:
            pause = min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS << min(refusals - FREE_TRIES, 16))
            self._resting[subject] = now + pause
        return True

    def rest(self, subject: Key, until: int) -> None:
        """Leave the subject alone until ``until``."""
        self._resting[subject] = until

    def resting(self) -> list[Key]:
        """The subjects that are left alone, sorted."""
        return sorted(self._resting)

    def wake(self, now: int) -> list[Key]:
        """Let go of the subjects that have rested; those of them of which no decision is on its way."""
        rested = [subject for subject, until in self._resting.items() if until <= now]
        for subject in rested:
            del self._resting[subject]
        return [subject for subject in rested if subject not in self._counts]

    def deadline(self) -> int | None:
        """When the next subject has rested."""
        return min(self._resting.values(), default=None)

    @classmethod
    def _from_iterable(cls, items: Iterable[T]) -> AbstractSet[T]:
        """What set operations with this one make: a plain set."""
        return frozenset(items)

    def __contains__(self, subject: object) -> bool:
        return subject in self._counts or subject in self._resting

    def __iter__(self) -> Iterator[Key]:
        return iter(self._counts.keys() | self._resting.keys())

    def __len__(self) -> int:
        # Asked for each of many subjects, so nothing is built for it; few rest, if any.
        return len(self._counts) + sum(subject not in self._counts for subject in self._resting)
