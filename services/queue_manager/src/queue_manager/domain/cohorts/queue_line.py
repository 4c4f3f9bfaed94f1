"""Those who wait in one ClusterQueue, by shape: when one of a shape finds no quota, none of that shape does."""

import heapq
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from kube import Key
from queue_manager.domain.cohorts.flavor_choice import Mode, Verdict
from queue_manager.domain.workloads.workload import Shape, Workload

Order = tuple[int, str, str, str]

_RETELL_MS = 10_000


@dataclass(slots=True)
class Ranks:
    """Workloads of one shape in their order. ``untold`` have not been told the reason why they wait."""

    heap: list[tuple[Order, Key]] = field(default_factory=list)
    verdict: Verdict | None = None
    """Why those of the shape find no quota at the moment; None while that is open."""
    queued: Order | None = None
    """The order by which the shape stands among the others."""
    told: Verdict | None = None
    told_at: int = 0
    untold: dict[Key, None] = field(default_factory=dict)


@dataclass(slots=True)
class QueueLine:
    """``strict`` lets nobody pass the first, as Kueue's StrictFIFO: not even one that asks for more than there can ever be."""

    name: str
    strict: bool = False
    members: dict[Key, Workload] = field(default_factory=dict)
    ranks: dict[Shape, Ranks] = field(default_factory=dict)
    _shapes: list[tuple[Order, int, Shape]] = field(default_factory=list)
    """The shapes that are open, by the order of their first; entries that are out of date are passed over.

    The number tells two entries of one workload apart whose shape changed: shapes have no order.
    """
    _entries: int = 0
    _failed: dict[Shape, None] = field(default_factory=dict)

    def put(self, workload: Workload) -> None:
        """A workload joins."""
        self.members[workload.key] = workload
        ranks = self.ranks.setdefault(workload.shape, Ranks())
        heapq.heappush(ranks.heap, (workload.order, workload.key))
        ranks.untold[workload.key] = None
        if ranks.verdict is None and (ranks.queued is None or workload.order < ranks.queued):
            self._queue(workload, ranks)

    def drop(self, key: Key) -> None:
        """A workload leaves."""
        workload = self.members.pop(key)
        ranks = self.ranks[workload.shape]
        ranks.untold.pop(key, None)
        self._first(workload.shape, ranks)

    def head(self) -> Workload | None:
        """The first for whom there may be quota."""
        while self._shapes:
            order, _, shape = self._shapes[0]
            ranks = self.ranks.get(shape)
            first = self._first(shape, ranks) if ranks is not None and ranks.queued == order else None
            if ranks is not None and first is not None and first.order == order:
                if ranks.verdict is None:
                    return first
                if self.strict:
                    return None
                ranks.queued = None
            heapq.heappop(self._shapes)
            if ranks is not None and first is not None and first.order != order:
                self._queue(first, ranks)
        return None

    def fail(self, shape: Shape, verdict: Verdict) -> None:
        """Nobody of the shape finds quota until something changes."""
        self.ranks[shape].verdict = verdict
        self._failed[shape] = None

    def look_again(self, at_least: Mode = Mode.NO_FIT) -> bool:
        """There may be quota now for those who failed by a verdict of ``at_least`` this mode; returns whether there are any."""
        failed, self._failed = self._failed, {}
        found = False
        for shape in failed:
            ranks = self.ranks.get(shape)
            if ranks is not None and ranks.verdict is not None and ranks.verdict.mode < at_least:
                self._failed[shape] = None
                continue
            first = self._first(shape, ranks) if ranks is not None else None
            if ranks is not None and first is not None:
                found, ranks.verdict = True, None
                if ranks.queued != first.order:
                    self._queue(first, ranks)
        return found

    def blocker(self) -> Workload | None:
        """In a strict queue the head that keeps all others waiting."""
        if not self.strict or self.head() is not None or not self._shapes:
            return None
        shape = self._shapes[0][2]
        return self._first(shape, self.ranks[shape])

    def to_tell(self, shape: Shape, verdict: Verdict, now: int, busy: AbstractSet[Key]) -> list[Workload]:
        """Those of a shape who are to be told ``verdict``: all where the reason is new, else whoever was told none yet.

        Numbers that merely moved are told to the first of the shape, after ten seconds. Who is ``busy`` is told later.
        """
        ranks = self.ranks[shape]
        keys = dict.fromkeys(ranks.untold)
        if ranks.told is None or ranks.told.reason != verdict.reason:
            known = ((key, self.members.get(key)) for _, key in sorted(ranks.heap))
            keys = {key: None for key, workload in known if workload is not None and workload.shape == shape}
        elif verdict.message != ranks.told.message and now >= ranks.told_at + _RETELL_MS:
            first = self._first(shape, ranks)
            keys |= {first.key: None} if first is not None else {}
        elif not keys:
            return []
        ranks.told, ranks.told_at = verdict, now
        ranks.untold = {key: None for key in keys if key in busy}
        return [self.members[key] for key in keys if key not in busy and key in self.members]

    def _queue(self, first: Workload, ranks: Ranks) -> None:
        ranks.queued = first.order
        self._entries += 1
        heapq.heappush(self._shapes, (first.order, self._entries, first.shape))

    def _first(self, shape: Shape, ranks: Ranks) -> Workload | None:
        while ranks.heap:
            order, key = ranks.heap[0]
            found = self.members.get(key)
            if found is not None and (found.shape is shape or found.shape == shape) and found.order == order:
                return found
            heapq.heappop(ranks.heap)
        self.ranks.pop(shape, None)
        return None
