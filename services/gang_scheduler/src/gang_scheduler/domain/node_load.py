"""What nodes use, as their agents measured it, and what is thought to come on top: whether one more pod would be too many.

The plain rule, for cpu and memory: measured use, and for each pod that came after the measurement (or less than a report
interval before it) what is not yet seen of its estimate, and the estimate of the pod to be placed, together at most the
threshold, in percent of allocatable, rounded. Measurements that are too old say nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from gang_scheduler.domain.load_estimate import Load
from gang_scheduler.domain.load_policy import MEASURED, LoadPolicy, Thresholds
from gang_scheduler.domain.node_metric import NOTHING_USED, Measurement
from gang_scheduler.domain.pod_shape import PodShape
from gang_scheduler.domain.vectors import ALL, Ints, Mask, Slots
from kube import Key
from resources import format_amounts

NO_LIMIT = 1 << 62
LONG_AGO = -(1 << 62)


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A pod on a node, as far as its load matters. ``bound_at`` is None while it is only about to be bound."""

    key: Key
    shape: PodShape
    bound_at: int | None


@dataclass(slots=True)
class NodeLoad:
    """Row 0 of every matrix is cpu in milli-cores, row 1 memory in bytes; a node is a column, as in the node table.

    ``limit`` is how much may be used at most; ``measured`` and ``expected`` what is used and what comes on top. The same
    of prod pods alone.
    """

    policy: LoadPolicy
    limit: Ints = field(default_factory=lambda: np.full((2, 0), NO_LIMIT, np.int64))
    measured: Ints = field(default_factory=lambda: np.zeros((2, 0), np.int64))
    expected: Ints = field(default_factory=lambda: np.zeros((2, 0), np.int64))
    prod_limit: Ints = field(default_factory=lambda: np.full((2, 0), NO_LIMIT, np.int64))
    prod_measured: Ints = field(default_factory=lambda: np.zeros((2, 0), np.int64))
    prod_expected: Ints = field(default_factory=lambda: np.zeros((2, 0), np.int64))
    taken_at: Ints = field(default_factory=lambda: np.full(0, LONG_AGO, np.int64))
    fresh: Mask = field(default_factory=lambda: np.zeros(0, np.bool_))
    now: int = LONG_AGO
    _by_slot: dict[int, Measurement] = field(default_factory=dict)
    _unseen: dict[int, dict[Key, tuple[Load, bool]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.resize(16)

    def resize(self, nodes: int) -> None:
        """Make place for at least so many."""
        more = nodes - len(self.fresh)
        if more <= 0:
            return
        none, nothing = np.full((2, more), NO_LIMIT, np.int64), np.zeros((2, more), np.int64)
        for name in ("limit", "prod_limit"):
            setattr(self, name, np.concatenate([getattr(self, name), none], axis=1))
        for name in ("measured", "expected", "prod_measured", "prod_expected"):
            setattr(self, name, np.concatenate([getattr(self, name), nothing], axis=1))
        self.taken_at = np.concatenate([self.taken_at, np.full(more, LONG_AGO, np.int64)])
        self.fresh = np.concatenate([self.fresh, np.zeros(more, np.bool_)])

    def measure(
        self,
        slot: int,
        measurement: Measurement,
        thresholds: Thresholds,
        allocatable: Load,
        pods: Iterable[Newcomer],
        is_prod: Callable[[Key], bool],
    ) -> None:
        """A node was measured anew; ``pods`` are all that are on it."""
        self.resize(slot + 1)
        self._by_slot[slot] = measurement
        self.taken_at[slot] = measurement.at
        self.fresh[slot] = self._is_fresh(measurement.at)
        self.limit[:, slot] = [
            _most(have, percent) for have, percent in zip(allocatable, thresholds.usage, strict=True)
        ]
        self.prod_limit[:, slot] = [_most(*pair) for pair in zip(allocatable, thresholds.prod, strict=True)]
        self.measured[:, slot] = measurement.used(thresholds.percentile, thresholds.window_ms)
        prod = [used for key, used in measurement.pods.items() if is_prod(key)]
        system = measurement.system if self.policy.prod_with_system else NOTHING_USED
        self.prod_measured[:, slot] = [sum(used[row] for used in prod) + system[row] for row in (0, 1)]
        self.expected[:, slot], self.prod_expected[:, slot] = 0, 0
        self._unseen[slot] = {}
        self.take(slot, pods)

    def forget(self, slot: int) -> None:
        """A node is gone, or what was measured of it."""
        if self._by_slot.pop(slot, None) is None:
            return
        self._unseen.pop(slot, None)
        self.taken_at[slot], self.fresh[slot] = LONG_AGO, False
        self.limit[:, slot], self.prod_limit[:, slot] = NO_LIMIT, NO_LIMIT
        for matrix in (self.measured, self.expected, self.prod_measured, self.prod_expected):
            matrix[:, slot] = 0

    def knows(self, slot: int) -> bool:
        """Whether the node was ever measured."""
        return slot in self._by_slot

    def take(self, slot: int, pods: Iterable[Newcomer]) -> None:
        """Pods come to a node."""
        measurement = self._by_slot.get(slot)
        if measurement is None:
            return
        unseen = self._unseen[slot]
        for pod in pods:
            if pod.bound_at is not None and pod.bound_at <= measurement.at - measurement.interval_ms:
                continue
            seen = measurement.pods.get(pod.key, NOTHING_USED)
            load = pod.shape.load
            more = Load(max(0, load.cpu - seen.cpu), max(0, load.memory - seen.memory))
            if pod.key not in unseen:
                unseen[pod.key] = more, pod.shape.prod
                self._add(slot, more, pod.shape.prod, 1)

    def give(self, slot: int, keys: Iterable[Key]) -> None:
        """Pods leave a node."""
        unseen = self._unseen.get(slot)
        for key in keys if unseen else ():
            entry = unseen.pop(key, None) if unseen is not None else None
            if entry is not None:
                self._add(slot, *entry, -1)

    def advance(self, now: int) -> list[int]:
        """It is ``now``; returns the nodes whose measurements have become too old, or not, since the last time."""
        if now == self.now or not self._by_slot:
            self.now = now
            return []
        self.now = now
        fresh = (self.taken_at > LONG_AGO) & (now - self.taken_at <= self.policy.expiry_ms)
        changed: list[int] = np.flatnonzero(fresh != self.fresh).tolist()
        self.fresh = fresh
        return changed

    def next_expiry(self) -> int | None:
        """When the next measurement becomes too old."""
        if not self.fresh.any():
            return None
        return int(self.taken_at[self.fresh].min()) + self.policy.expiry_ms + 1

    def copies(self, shape: PodShape, slots: Slots = ALL) -> Ints | None:
        """How many more pods the load of each node allows; None where nothing limits them."""
        if not self._by_slot or shape.exempt or not self.policy.enabled:
            return None
        prod = shape.prod & (self.prod_limit[:, slots] < NO_LIMIT).any(axis=0)
        copies: Ints = np.full(prod.shape, 1 << 20, np.int64)
        for row, load in enumerate(shape.load):
            usual = self.limit[row, slots] - self.measured[row, slots] - self.expected[row, slots]
            own = self.prod_limit[row, slots] - self.prod_measured[row, slots] - self.prod_expected[row, slots]
            copies = np.minimum(copies, np.where(prod, own, usual) // max(1, load))
        closed = (self.taken_at[slots] > LONG_AGO) & ~self.fresh[slots] & self.policy.closes_when_expired
        copies = np.where(self.fresh[slots], np.maximum(0, copies), 1 << 20)
        return np.where(closed, 0, copies)

    def filters(self, shape: PodShape, names: Sequence[str]) -> Iterator[tuple[str, Mask]]:
        """What keeps a pod out because a node is busy: the words for such nodes, and those that pass."""
        if self.copies(shape) is None:
            return
        if self.policy.closes_when_expired:
            yield "have reported no usage for too long", self.fresh | (self.taken_at == LONG_AGO)
        prod = shape.prod & (self.prod_limit < NO_LIMIT).any(axis=0)
        for row, (name, load) in enumerate(zip(MEASURED, shape.load, strict=True)):
            limit = np.where(prod, self.prod_limit[row], self.limit[row])
            used = np.where(prod, self.prod_measured[row], self.measured[row])
            used = used + np.where(prod, self.prod_expected[row], self.expected[row])
            passes = ~self.fresh | (used + load <= limit)
            if passes.all():
                continue
            least = int(np.where(passes, NO_LIMIT, used).argmin())
            shown = [format_amounts({name: int(amount)})[name] for amount in (load, used[least], limit[least])]
            words = (
                f"are too busy by {name} (the pod is thought to use {shown[0]}; on {names[least]} {shown[1]} are used or "
                f"about to be, {shown[2]} may be)"
            )
            yield words, passes

    def _is_fresh(self, at: int) -> bool:
        return self.now - at <= self.policy.expiry_ms

    def _add(self, slot: int, load: Load, prod: bool, sign: int) -> None:
        for row, amount in enumerate(load):
            self.expected[row, slot] += sign * amount
            if prod:
                self.prod_expected[row, slot] += sign * amount


def _most(have: int, percent: int) -> int:
    """The largest amount that is, in rounded percent of ``have``, not above ``percent``."""
    return ((2 * percent + 1) * have - 1) // 200 if percent else NO_LIMIT
