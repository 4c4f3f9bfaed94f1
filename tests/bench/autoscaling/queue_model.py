"""One queue in front of replicas that each answer so many requests at once: first come, first served, in virtual time."""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Requests:
    """``arrive`` is when each comes, in seconds and in order; ``serve`` how long one slot is busy with it, in seconds."""

    arrive: Floats
    serve: Floats

    @property
    def seconds(self) -> int:
        """How long they come for."""
        return int(self.arrive[-1]) + 1


@dataclass(frozen=True, slots=True)
class Seen:
    """What was so since the last step: requests in the system and slots at work on average, and how many requests came."""

    in_flight: float
    busy: float
    arrived: int


def offered(requests: Requests) -> Floats:
    """How many requests would be in progress on average in each second if none had to wait."""
    seconds = np.arange(requests.seconds + int(requests.serve.max()) + 2, dtype=np.float64)
    arrive, end = np.sort(requests.arrive), np.sort(requests.arrive + requests.serve)
    return np.diff(_time_since(arrive, seconds) - _time_since(end, seconds))


def _time_since(moments: Floats, at: Floats) -> Floats:
    """For each time in ``at``: the sum of the times since the moments before it. ``moments`` are in order."""
    count = np.searchsorted(moments, at, side="right")
    total = np.concatenate([[0.0], np.cumsum(moments)])
    return np.asarray(count * at - total[count])


class Queue:
    """Requests as they come, wait, and are answered. ``begin`` is when each got its slot, NaN for those that have none yet."""

    def __init__(self, requests: Requests) -> None:
        self.requests = requests
        self.begin = np.full(len(requests.arrive), np.nan)
        self.now = 0.0
        self._ends = np.empty(4096)
        self._marks = np.zeros(3, dtype=np.int64)

    def advance(self, until: float, slots: int) -> Seen:
        """Let time pass with so many slots. Fewer than are at work take nothing new until enough of them are done."""
        if slots > len(self._ends):
            self._ends = np.concatenate([self._ends, np.empty(2 * slots)])
        arrived, length = int(self._marks[0]), until - self.now
        own = self.requests
        total, busy = _advance(own.arrive, own.serve, self.begin, self._ends, self._marks, self.now, until, slots)
        self.now = until
        return Seen(total / length, busy / length, int(self._marks[0]) - arrived)

    def finish(self, slots: int) -> Floats:
        """How long each request waited for its slot, in seconds, when no more come and the slots stay."""
        while np.isnan(self.begin).any():
            self.advance(self.now + 60.0, max(slots, 1))
        return np.asarray(self.begin - self.requests.arrive)


@njit
def _push(heap, size, value):  # type: ignore[no-untyped-def]
    """Put ``value`` into a heap of ``size`` values."""
    at = size
    while at > 0 and heap[(at - 1) // 2] > value:
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = value


@njit
def _pop(heap, size):  # type: ignore[no-untyped-def]
    """Take the least value off a heap that has ``size`` values afterwards."""
    last, at = heap[size], 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= last:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = last


@njit
def _advance(arrive, serve, begin, ends, marks, since, until, slots):  # type: ignore[no-untyped-def]
    """``marks`` are the next to come, the next to begin, and how many are at work, whose ``ends`` are a heap."""
    total, busy, now = 0.0, 0.0, since
    while True:
        while marks[1] < marks[0] and marks[2] < slots:
            begin[marks[1]] = now
            _push(ends, marks[2], now + serve[marks[1]])
            marks[1] += 1
            marks[2] += 1
        coming = arrive[marks[0]] if marks[0] < len(arrive) else np.inf
        ending = ends[0] if marks[2] else np.inf
        then = min(coming, ending, until)
        total += (marks[0] - marks[1] + marks[2]) * (then - now)
        busy += marks[2] * (then - now)
        now = then
        if then >= until:
            return total, busy
        if ending <= coming:
            marks[2] -= 1
            _pop(ends, marks[2])
        else:
            marks[0] += 1
