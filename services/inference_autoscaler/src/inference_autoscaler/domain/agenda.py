"""Who has to be looked at when, and by what facts: whoever expects nothing has no time, and costs nothing."""

from collections.abc import Collection, Container, Hashable, Iterable
from heapq import heappop, heappush

from kube import Key, Manifest

_NOBODY: dict[Key, None] = {}


class Agenda:
    """The times at which somebody has to be looked at, in milliseconds; of one and the same time there are many."""

    def __init__(self) -> None:
        self._slots: dict[int, dict[Key, None]] = {}
        self._times: list[int] = []
        self._when: dict[Key, int] = {}

    def put(self, key: Key, at: int) -> None:
        """Look at it at ``at``, and not when it was to be looked at before."""
        old = self._when.get(key)
        if old == at:
            return
        if old is not None:
            del self._slots[old][key]
        self._when[key] = at
        if at not in self._slots:
            self._slots[at] = {}
            heappush(self._times, at)
        self._slots[at][key] = None

    def drop(self, key: Key) -> None:
        """It expects nothing."""
        if (old := self._when.pop(key, None)) is not None:
            del self._slots[old][key]

    def next(self) -> int | None:
        """The next time; None where nobody expects anything."""
        while self._times and not self._slots[self._times[0]]:
            del self._slots[heappop(self._times)]
        return self._times[0] if self._times else None

    def take(self, now: int) -> list[Key]:
        """Those whose time has come by ``now``; they have none any more."""
        taken: list[Key] = []
        while (time := self.next()) is not None and time <= now:
            taken += self._slots[time]
            self._slots[time] = {}
        for key in taken:
            del self._when[key]
        return taken


class Subscribers:
    """Who has to be looked at again when one of the things that he goes by changes."""

    def __init__(self) -> None:
        self._of: dict[Hashable, dict[Key, None]] = {}
        self._topics: dict[Key, tuple[Hashable, ...]] = {}

    def subscribe(self, key: Key, topics: Iterable[Hashable]) -> None:
        """From now on ``key`` goes by ``topics``, and by nothing else."""
        for topic in self._topics.pop(key, ()):
            self._of[topic].pop(key, None)
            if not self._of[topic]:
                del self._of[topic]
        if wanted := tuple(dict.fromkeys(topics)):
            self._topics[key] = wanted
        for topic in wanted:
            self._of.setdefault(topic, {})[key] = None

    def of(self, topic: Hashable) -> Collection[Key]:
        """Those who go by ``topic``."""
        return self._of.get(topic, _NOBODY).keys()


class Ticks:
    """Who is looked at in this tick (``due``), and in each one from the next on (``awake``); a tick is ``every`` milliseconds."""

    def __init__(self, every: int) -> None:
        self.due: dict[Key, None] = {}
        self.awake: dict[Key, None] = {}
        self.now: int | None = None
        """The tick, counted from the epoch; None before the first one."""
        self._every = every

    def begin(self, now: int) -> bool:
        """It is ``now``; whether the clock was put back."""
        tick, before = now // self._every, self.now
        if before is not None and tick > before:
            self.due.update(self.awake)
        self.now = tick
        return before is not None and tick < before

    def take(self, in_flight: Container[Key]) -> list[Key]:
        """Those to be looked at, in order; who has a decision on its way stays due."""
        due, self.due = sorted(self.due), {key: None for key in self.due if key in in_flight}
        return [key for key in due if key not in in_flight]

    def deadline(self) -> int | None:
        """The next look at those that are awake."""
        return None if self.now is None or not self.awake else (self.now + 1) * self._every


class Owed:
    """Who is owed a look besides: one that was refused, or put off while a decision was on its way.

    That is remembered before the look is made, so that whoever makes its decision again, or takes over, looks, too.
    ``at_once`` says that somebody may be looked at as soon as what was remembered last is written down.
    """

    def __init__(self) -> None:
        self.at_once = False
        self._waiting: dict[Key, None] = {}
        self._refused: dict[Key, None] = {}
        self._is_changed = False

    def refuse(self, key: Key) -> None:
        """What its look came to was refused."""
        self._refused[key] = None
        self._is_changed = True

    def put_off(self, key: Key) -> None:
        """It was to be looked at, and a decision about it is on its way."""
        self._is_changed |= key not in self._waiting
        self._waiting[key] = None

    def drop(self, key: Key) -> None:
        """It is looked at, or gone."""
        for known in (self._waiting, self._refused):
            if key in known:
                del known[key]
                self._is_changed = True

    def due(self, in_flight: Container[Key]) -> list[Key]:
        """Those who can be looked at now."""
        self.at_once = False
        return [key for key in self._waiting if key not in in_flight]

    def take_changes(self) -> dict[str, Manifest | None]:
        """What has to be remembered anew."""
        if not self._is_changed:
            return {}
        self.at_once = bool(self._refused)
        self._waiting |= self._refused
        self._refused, self._is_changed = {}, False
        return {OWED: {"keys": [[*key] for key in sorted(self._waiting)]} if self._waiting else None}

    def restore(self, told: Manifest | None) -> None:
        """Take up what was remembered."""
        self._waiting = {Key(*key): None for key in (told or {}).get("keys") or ()}


OWED = "owed"
"""The name of the part under which that is remembered."""
