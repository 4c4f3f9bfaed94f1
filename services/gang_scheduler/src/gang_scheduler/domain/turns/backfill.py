"""So that nobody starves (EASY backfill): who has waited long at the head of a queue gets its room reserved.

Those behind it may still go first, if they do not delay it: where its room is not, or if they end before it can start. The
room is that where it can start first: as those end who say when they end, and after them on the nodes with least on them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gang_scheduler.domain.cluster import Cluster
from gang_scheduler.domain.evictions.departure import Departures, Future
from gang_scheduler.domain.evictions.wish import Wish
from gang_scheduler.domain.line.claims import Basis, Claim, Claims
from gang_scheduler.domain.line.waiting_line import Unit
from gang_scheduler.domain.pods.pod_record import PodRecord
from gang_scheduler.domain.room.trial import Trial
from kube import Key

PATIENCE_MS = 300_000
"""So long somebody waits at the head before room is reserved for it."""

Place = tuple[int, int, str, str, Unit]
"""The order in a queue: priority (0 for all where age alone counts), minima before surplus, age, name."""


@dataclass(slots=True)
class Heads:
    """Who waits in each queue for room, and since when the first of them has been the first."""

    since: dict[Unit, int] = field(default_factory=dict)
    """When a unit that waits became a head, in milliseconds since the epoch."""

    places: dict[Unit, tuple[str, Place]] = field(default_factory=dict)
    _lines: dict[str, dict[Unit, Place]] = field(default_factory=dict)
    _heads: dict[str, Unit] = field(default_factory=dict)
    _stale: set[str] = field(default_factory=set)

    def wait(self, unit: Unit, queue: str, place: Place) -> None:
        """The unit waits for room."""
        if self.places.get(unit) == (queue, place):
            return
        self.leave(unit)
        self.places[unit] = (queue, place)
        self._lines.setdefault(queue, {})[unit] = place
        self._stale.add(queue)

    def leave(self, unit: Unit) -> None:
        """The unit waits for room no more."""
        known = self.places.pop(unit, None)
        if known is not None:
            del self._lines[known[0]][unit]
            self._stale.add(known[0])

    def settle(self, now: int, waits: Callable[[Unit], bool]) -> None:
        """Look who is first in the queues that changed. ``waits`` says of those not tried in this pass whether they wait still."""
        for queue in self._stale:
            line = self._lines.get(queue)
            if line:
                head = self._heads[queue] = min(line, key=line.__getitem__)
                self.since.setdefault(head, now)
            else:
                self._heads.pop(queue, None)
                self._lines.pop(queue, None)
        self._stale.clear()
        for unit in [unit for unit in self.since if unit not in self.places and not waits(unit)]:
            del self.since[unit]

    def first(self) -> dict[str, tuple[Unit, Place]]:
        """By queue its head and the place of that."""
        return {queue: (unit, self.places[unit][1]) for queue, unit in self._heads.items()}

    def recall(self, since: dict[Unit, int], first: Mapping[str, tuple[Unit, Place]]) -> None:
        """Take up what a predecessor knew."""
        self.since = since
        for queue, (unit, place) in first.items():
            self.wait(unit, queue, place)
            self._heads[queue] = unit

    def due(self, now: int) -> list[Unit]:
        """The heads that have waited long enough, by queue."""
        heads = (self._heads[queue] for queue in sorted(self._heads))
        return [unit for unit in heads if now - self.since[unit] >= PATIENCE_MS]

    def next_due(self, now: int) -> int | None:
        """When the next head has waited long enough."""
        times = [self.since[unit] + PATIENCE_MS for unit in self._heads.values()]
        return min((time for time in times if time > now), default=None)


@dataclass(slots=True)
class Backfill:
    """Lives for one pass: makes reservations for ``due`` and says which of them somebody may pass."""

    cluster: Cluster
    trial: Trial
    claims: Claims
    heads: Heads
    now: int
    due: set[Unit] = field(default_factory=set)

    def passable(self, unit: Unit, queue: str, place: Place, records: Iterable[PodRecord]) -> list[Unit]:
        """The reservations that do not bind a unit: its own, those of units behind it, those that it does not delay."""
        if not self.claims.reservations:
            return []
        ledger = self.cluster.room.ledger
        lengths = [self.cluster.run_times.estimate(record) for record in records]
        ends = None if None in lengths else self.now + max((length or 0 for length in lengths), default=0)
        found = []
        for other, claim in self.claims.reservations.items():
            where, its_place = self.heads.places.get(other, (queue, place))
            before = place < its_place if where == queue else ledger.order(queue) < ledger.order(where)
            in_time = ends is not None and claim.earliest is not None and ends <= claim.earliest
            if other == unit or before or in_time:
                found.append(other)
        return found

    def reserve(self, unit: Unit, wish: Wish) -> None:
        """Reserve room for a head that is due and has none, where it can start first."""
        if unit not in self.due:
            return
        known = self.claims.reservations.get(unit)
        if known is not None:
            if self.claims.pending_room(known):
                return
            self.claims.end(known)
        future = Future(self.cluster.room, self.claims)
        others = list(self.claims.reservations.values())
        future.enter([r for r in self._placed() if self.claims.leaves(r)], others)
        try:
            lack = self.cluster.room.ledger.lack(wish.queue, wish.ask)
            found = self._plan(unit, wish) if lack is None else self._in_queue(unit, wish, lack[0])
        finally:
            future.leave()
        if found is not None:
            self.claims.add(found)

    def foresee(self, unit: Unit, wish: Wish, others: Sequence[Claim] = ()) -> Claim | None:
        """Where the wish can come true first beside ``others``, after whom, and when if that is known; reserves nothing."""
        future = Future(self.cluster.room, self.claims)
        future.enter([record for record in self._placed() if self.claims.leaves(record)], others)
        try:
            lack = self.cluster.room.ledger.lack(wish.queue, wish.ask)
            return self._plan(unit, wish) if lack is None else self._in_queue(unit, wish, lack[0])
        finally:
            future.leave()

    def _in_queue(self, unit: Unit, wish: Wish, queue: str) -> Claim | None:
        """While its queue is at its capability a head gets what its queue may use, and no room on nodes, which others can use."""
        ledger, gone = self.cluster.room.ledger, Departures(self.cluster.room)
        ends = {record.key: self.cluster.run_times.expected_end(record, self.now) for record in self._placed()}
        inside = [
            record
            for record in self._placed()
            if record.charged is not None and queue in ledger.chain(record.charged) and not self.claims.leaves(record)
        ]
        inside.sort(key=lambda record: (ends[record.key] is None, ends[record.key] or 0, record.order))
        awaited = []
        for record in inside:
            if ledger.lack(wish.queue, wish.ask) is None:
                break
            gone.take([record])
            awaited.append(record)
        lacks = ledger.lack(wish.queue, wish.ask) is not None
        gone.undo()
        if lacks:
            return None
        times = [end for record in awaited if (end := ends[record.key]) is not None]
        until = max(times) if times and len(times) == len(awaited) else None
        places = {record.key: (record.pod.uid, "") for record in wish.records}
        waits_for = {r.key: r.pod.uid for r in awaited}
        return Claim(unit, Basis.RESERVATION, places, waits_for, until, until)

    def _plan(self, unit: Unit, wish: Wish) -> Claim | None:
        gone = Departures(self.cluster.room)
        ends: dict[Key, int | None] = {}
        try:
            waves, until = self._waves(wish, ends), None
            count = self._fewest(wish, waves, gone)
            if count is None:
                return None
            taken = [record for wave in waves[:count] for record in wave]
            gone.take(taken)
            mark = self.trial.checkpoint()
            if not self._placed_late(wish, taken, gone):
                return None
            steps = self.trial.since(mark)
            awaited = self._needed({step.slot for step in steps}, taken, gone)
            self.trial.rollback(mark)
            names = self.cluster.room.table.names
            places = {r.key: (r.pod.uid, names[step.slot]) for step in steps for r in step.records}
            times = [end for record in awaited if (end := ends[record.key]) is not None]
            if len(times) == len(awaited):
                until = max(times, default=self.now)
            earliest = max(times, default=until)
            waits_for = {r.key: r.pod.uid for r in awaited}
            devices = tuple(device for step in steps for device in step.devices)
            shares = tuple(share for step in steps for share in step.shares)
            return Claim(unit, Basis.RESERVATION, places, waits_for, until, earliest, devices, shares)
        finally:
            gone.undo()

    def _placed_late(self, wish: Wish, taken: Sequence[PodRecord], gone: Departures) -> bool:
        """Place the wish on the nodes that come free last: those that are free before can serve others until then.

        It starts no later for that, as all who were ``taken`` have ended by then.
        """
        room = self.cluster.room
        if any(group.fenced for group in wish.groups):
            return wish.attempt()
        freed = {gone.slot_of(record): at for at, record in enumerate(taken)}
        rank = room.table.rank()
        slots = sorted(room.table.slots.values(), key=lambda slot: (freed.get(slot, -1), int(rank[slot])))
        low, high = 0, len(slots)
        while low < high:
            middle = (low + high + 1) // 2
            mark = self.trial.checkpoint()
            if self._placed_on(wish, slots[middle:]):
                low = middle
            else:
                high = middle - 1
            self.trial.rollback(mark)
        return self._placed_on(wish, slots[low:])

    def _placed_on(self, wish: Wish, slots: Sequence[int]) -> bool:
        room = self.cluster.room
        room.fence = np.zeros(room.table.size, np.bool_)
        room.fence[list(slots)] = True
        try:
            return wish.attempt()
        finally:
            room.fence = None

    def _waves(self, wish: Wish, ends: dict[Key, int | None]) -> list[list[PodRecord]]:
        """All pods on nodes, in the order in which they will end: those with a known end by it, the others node by node."""
        table = self.cluster.room.table
        known: dict[int, list[PodRecord]] = {}
        unknown: dict[int, list[PodRecord]] = {}
        mine = {record.key for record in wish.records}
        for record in self._placed():
            if record.key in mine or self.claims.leaves(record):
                continue
            end = ends[record.key] = self.cluster.run_times.expected_end(record, self.now)
            if end is None:
                unknown.setdefault(record.slot, []).append(record)
            else:
                known.setdefault(end, []).append(record)
        rank = table.rank()
        slots = sorted(unknown, key=lambda slot: (self._filled(slot), int(rank[slot])))
        return [*(known[end] for end in sorted(known)), *(unknown[slot] for slot in slots)]

    def _filled(self, slot: int) -> float:
        """How full a node is, by its fullest resource."""
        table = self.cluster.room.table
        has, used = table.allocatable[:, slot], table.used[:, slot]
        return max((float(u) / float(h) for h, u in zip(has, used, strict=True) if h > 0), default=0.0)

    def _fewest(self, wish: Wish, waves: Sequence[Sequence[PodRecord]], gone: Departures) -> int | None:
        """After how many waves the wish can come true; None if it cannot even then."""
        low, high = 0, len(waves)
        if not self._after(wish, waves, high, gone):
            return None
        while low < high:
            middle = (low + high) // 2
            if self._after(wish, waves, middle, gone):
                high = middle
            else:
                low = middle + 1
        return low

    def _after(self, wish: Wish, waves: Sequence[Sequence[PodRecord]], count: int, gone: Departures) -> bool:
        gone.take([record for wave in waves[:count] for record in wave])
        mark = self.trial.checkpoint()
        done = wish.attempt()
        self.trial.rollback(mark)
        gone.undo()
        return done

    def _needed(self, slots: set[int], taken: Sequence[PodRecord], gone: Departures) -> list[PodRecord]:
        """Who has to end so that what is placed now has its room: the last to end may stay where they fit beside it."""
        table, pools, needed = self.cluster.room.table, self.cluster.room.claim_book.pools, []
        for record in reversed(taken):
            slot = gone.slot_of(record)
            gone.put_back([record])
            full = slot in slots and bool((table.used[:, slot] > table.allocatable[:, slot]).any())
            if full or (record.claim_keys and any(pools.overdrawn())):
                gone.take([record])
                needed.append(record)
        return needed

    def _placed(self) -> list[PodRecord]:
        return self.cluster.placed()
