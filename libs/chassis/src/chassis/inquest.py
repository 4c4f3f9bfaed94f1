"""Finding out whom a core stumbles over: it is made anew from the facts, again and again, without some of them.

Cores are pure, so nothing happens when one of them is tried. Specification: the culprit is the object without which the
core does not stumble. It is searched by halves, in the order of the objects' last changes, and in two ways: first the
core decides nothing about the objects that it is spared; if it stumbles even so, they are not there at all.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

from chassis.core import Core, Reading
from chassis.private_state import PrivateState, asking
from kube import Decision, Event, Key, Object, Store
from tidegate.codec.decisions import CommitHead, encode_commit

MOST_CULPRITS = 20
"""So many are searched for at a time; if there are more, the core stumbles again."""


class Culprit(NamedTuple):
    """An object that a core stumbles over; ``hidden``: even if nothing is to be decided about it."""

    item: Object
    error: Exception
    hidden: bool


@dataclass(frozen=True, slots=True)
class Inquest:
    """All that the core had been given when it stumbled; ``now`` is the time that it was told."""

    make_core: Callable[[], Core]
    store: Store
    private: PrivateState
    heard: Sequence[tuple[str, Decision]]
    in_flight: frozenset[Key]
    hidden: frozenset[Key]
    now: int
    released: Sequence[tuple[Key, bool]] = ()
    """Those that were kept away before and had another chance, and whether they were hidden: they are suspected first."""

    def culprits(self) -> list[Culprit]:
        """Those that have to be kept away; none where the core does not stumble, or whatever is kept away."""
        resting, hidden = set(self.in_flight), set(self.hidden)
        found: list[Culprit] = []
        while len(found) < MOST_CULPRITS and (error := self.stumble(resting, hidden)) is not None:
            culprit = self._search(resting, hidden, error)
            if culprit is None:
                break
            found.append(culprit)
            (hidden if culprit.hidden else resting).add(culprit.item.key)
        return found

    def stumble(self, resting: AbstractSet[Key], hidden: AbstractSet[Key]) -> Exception | None:
        """The error of a core that decides nothing about ``resting`` and does not know of ``hidden``."""
        try:
            core = self.make_core()
            if isinstance(core, Reading):
                core.read_from(self.store)
            self.private.give(core)
            core.fold([Event(None, item) for item in self.store.objects.values() if item.key not in hidden], self.now)
            for service, decision in self.heard:
                core.hear(service, decision)
            decided = [(f"{number}", one) for number, one in enumerate(core.decide(self.now, frozenset(resting)))]
            encode_commit(CommitHead("inquest", 0, 0, self.now), decided)
            for decision_id, decision in decided:
                core.assume(decision_id, decision)
            asking(core)(self.private)
            core.deadline()
        except Exception as error:
            return error
        return None

    def _search(self, resting: set[Key], hidden: set[Key], error: Exception) -> Culprit | None:
        for key, hides in self.released:
            item = self.store.get(key)
            if item is not None and key not in resting and key not in hidden:
                alone = {key}
                rests, hid = (resting, hidden | alone) if hides else (resting | alone, hidden)
                if self.stumble(rests, hid) is None:
                    return Culprit(item, error, hides)
        known = resting | hidden
        # What has no namespace is what others rest on: it is blamed last.
        suspects = sorted(
            (item for item in self.store.objects.values() if item.key not in known),
            key=lambda item: (bool(item.namespace), item.revision, item.key),
        )
        keys = [item.key for item in suspects]
        for hides in (False, True):

            def spare(count: int, hides: bool = hides) -> Exception | None:
                """Stumble over the first ``count`` suspects, all others being spared."""
                if hides:
                    return self.stumble(resting.union(keys), hidden.union(keys[count:]))
                return self.stumble(resting.union(keys[count:]), hidden)

            # Who changed last is suspected first: the search among few is a short one.
            innocent = next((count for count in _cuts(len(keys)) if spare(count) is None), None)
            if innocent is not None and innocent < len(keys):
                guilty = range(innocent + 1, len(keys))
                place = innocent + 1 + bisect_left(guilty, True, key=lambda count: spare(count) is not None)
                return Culprit(suspects[place - 1], spare(place) or error, hides)
        return None


def _cuts(count: int) -> Iterator[int]:
    """How many of the oldest suspects are taken for innocent at first, ever fewer."""
    yield from (count - newest for newest in (16, 512, 16_384) if newest < count)
    yield 0
