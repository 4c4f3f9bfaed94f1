"""What nodes use, as their agents measured it, and what is thought to come on top: whether one more pod would be too many.

The plain rule, for cpu and memory: measured use, and for each pod that came after the measurement (or less than a report
interval before it) what is not yet seen of its estimate, and the estimate of the pod to be placed, together at most the
threshold, in percent of allocatable, rounded. Measurements that are too old say nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from gang_scheduler.domain.columns.vectors import ALL, Ints, Mask, Slots
from gang_scheduler.domain.nodes.load_score import LoadScore
from gang_scheduler.domain.nodes.node_metric import NOTHING_USED, Measurement
from gang_scheduler.domain.pods.pod_record import Newcomer
from gang_scheduler.domain.pods.pod_shape import PodShape
from gang_scheduler.domain.terms.load_estimate import Load
from gang_scheduler.domain.terms.load_policy import MEASURED, LoadPolicy, Thresholds
from kube import Key
from resources import format_amounts

NO_LIMIT = 1 << 62
LONG_AGO = -(1 << 62)
MANY = 1 << 20
"""So many copies where load says nothing; no node takes more pods."""


@dataclass(slots=True)
class NodeLoad:
    """Row 0 of every matrix is cpu in milli-cores, row 1 memory in bytes; a node is a column, as in the node table.

    ``limit`` is how much may be used at most, ``left`` what of it is neither used nor about to be. Prod pods have a limit
    of their own on the nodes that ``prod_limited`` says.
    """

    policy: LoadPolicy
    limit: Ints = field(default_factory=lambda: np.full((2, 0), NO_LIMIT, np.int64))
    left: Ints = field(default_factory=lambda: np.zeros((2, 0), np.int64))
    prod_limit: Ints = field(default_factory=lambda: np.full((2, 0), NO_LIMIT, np.int64))
    prod_left: Ints = field(default_factory=lambda: np.zeros((2, 0), np.int64))
    prod_limited: Mask = field(default_factory=lambda: np.zeros(0, np.bool_))
    taken_at: Ints = field(default_factory=lambda: np.full(0, LONG_AGO, np.int64))
    fresh: Mask = field(default_factory=lambda: np.zeros(0, np.bool_))
    now: int = LONG_AGO
    score: LoadScore = field(init=False)
    by_slot: dict[int, Measurement] = field(default_factory=dict)
    """The newest measurement of every node that was ever measured."""

    _unseen: dict[int, dict[Key, tuple[Load, bool]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.score = LoadScore(self.policy.ranking)
        self.resize(16)

    def resize(self, nodes: int) -> None:
        """Make place for at least so many."""
        more = nodes - len(self.fresh)
        if more <= 0:
            return
        none, nothing = np.full((2, more), NO_LIMIT, np.int64), np.zeros((2, more), np.int64)
        for name, part in (("limit", none), ("prod_limit", none), ("left", nothing), ("prod_left", nothing)):
            setattr(self, name, np.concatenate([getattr(self, name), part], axis=1))
        self.taken_at = np.concatenate([self.taken_at, np.full(more, LONG_AGO, np.int64)])
        self.fresh = np.concatenate([self.fresh, np.zeros(more, np.bool_)])
        self.prod_limited = np.concatenate([self.prod_limited, np.zeros(more, np.bool_)])

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
        self.by_slot[slot] = measurement
        self.taken_at[slot] = measurement.at
        self.fresh[slot] = self._is_fresh(measurement.at)
        used = measurement.used(thresholds.percentile, thresholds.window_ms)
        limit = [_most(*pair) for pair in zip(allocatable, thresholds.usage, strict=True)]
        self.limit[:, slot] = limit
        self.left[:, slot] = [most - amount for most, amount in zip(limit, used, strict=True)]
        self.prod_limited[slot] = any(thresholds.prod)
        ranking = self.policy.ranking
        prod = NOTHING_USED
        if any(thresholds.prod) or ranking.by_prod:
            of_prod = [amounts for key, amounts in measurement.pods.items() if is_prod(key)]
            of_prod.append(measurement.system if self.policy.prod_with_system else NOTHING_USED)
            prod = Load(*map(sum, zip(*of_prod, strict=True)))
        if any(thresholds.prod):
            limit = [_most(*pair) for pair in zip(allocatable, thresholds.prod, strict=True)]
            self.prod_limit[:, slot] = limit
            self.prod_left[:, slot] = [most - amount for most, amount in zip(limit, prod, strict=True)]
        if ranking.weight:
            self.score.measure(slot, allocatable, measurement.used(ranking.percentile, ranking.window_ms), prod)
        self._unseen[slot] = {}
        self.take(slot, pods)

    def forget(self, slot: int) -> None:
        """A node is gone, or what was measured of it."""
        if self.by_slot.pop(slot, None) is None:
            return
        self._unseen.pop(slot, None)
        self.taken_at[slot], self.fresh[slot], self.prod_limited[slot] = LONG_AGO, False, False
        self.limit[:, slot], self.prod_limit[:, slot] = NO_LIMIT, NO_LIMIT
        self.left[:, slot], self.prod_left[:, slot] = 0, 0

    def take(self, slot: int, pods: Iterable[Newcomer]) -> None:
        """Pods come to a node."""
        measurement = self.by_slot.get(slot)
        if measurement is None:
            return
        unseen, seen, came = self._unseen[slot], measurement.pods, []
        latest = measurement.at - measurement.interval_ms
        for key, shape, bound_at in pods:
            if key in unseen or (bound_at is not None and bound_at <= latest):
                continue
            load = shape.load if key not in seen else _beyond(shape.load, seen[key])
            unseen[key] = entry = (load, shape.prod)
            came.append(entry)
        self._add(slot, came, 1)

    def give(self, slot: int, keys: Iterable[Key]) -> None:
        """Pods leave a node."""
        unseen = self._unseen.get(slot)
        if unseen:
            self._add(slot, [unseen.pop(key) for key in keys if key in unseen], -1)

    def advance(self, now: int) -> list[int]:
        """It is ``now``; returns the nodes whose measurements have become too old, or not, since the last time."""
        if now == self.now or not self.by_slot:
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
        if not self._matters(shape):
            return None
        left = self._left(shape, slots)
        cpu, memory = (left[row] // max(1, load) for row, load in enumerate(shape.load))
        copies: Ints = np.where(self.fresh[slots], np.maximum(0, np.minimum(cpu, memory)), MANY)
        if self.policy.closes_when_expired:
            copies[(self.taken_at[slots] > LONG_AGO) & ~self.fresh[slots]] = 0
        return copies

    def copies_at(self, shape: PodShape, slots: Sequence[int]) -> list[int] | None:
        """The same for a few nodes, without the cost of starting vector operations."""
        if not self._matters(shape):
            return None
        cpu, memory = (max(1, load) for load in shape.load)
        found = []
        for slot in slots:
            if self.fresh[slot]:
                left = self.prod_left if shape.prod and self.prod_limited[slot] else self.left
                found.append(max(0, min(int(left[0, slot]) // cpu, int(left[1, slot]) // memory)))
            else:
                closed = self.policy.closes_when_expired and self.taken_at[slot] > LONG_AGO
                found.append(0 if closed else MANY)
        return found

    def ranks(self, shape: PodShape) -> bool:
        """Whether nodes are the better for such pods the less they use."""
        return self.policy.ranking.weight > 0 and self._matters(shape)

    def scores(self, shape: PodShape, slots: Slots, full: int) -> Ints:
        """What nodes get for using little, weighted; ``full`` is the score of one that would use nothing."""
        return self.score.of(shape, slots, self.fresh[slots], full)

    def filters(self, shape: PodShape, names: Sequence[str]) -> Iterator[tuple[str, Mask]]:
        """What keeps a pod out because a node is busy: the words for such nodes, and those that pass."""
        if not self._matters(shape):
            return
        if self.policy.closes_when_expired:
            yield "have reported no usage for too long", self.fresh | (self.taken_at == LONG_AGO)
        limits = np.where(self.prod_limited, self.prod_limit, self.limit) if shape.prod else self.limit
        all_left = self._left(shape, ALL)
        for row, (name, load) in enumerate(zip(MEASURED, shape.load, strict=True)):
            passes = ~self.fresh | (all_left[row] >= load)
            if passes.all():
                continue
            used = limits[row] - all_left[row]
            least = int(np.where(passes, NO_LIMIT, used).argmin())
            shown = [format_amounts({name: int(amount)})[name] for amount in (load, used[least], limits[row, least])]
            words = (
                f"are too busy by {name} (the pod is thought to use {shown[0]}; on {names[least]} {shown[1]} are used or "
                f"about to be, {shown[2]} may be)"
            )
            yield words, passes

    def _matters(self, shape: PodShape) -> bool:
        return bool(self.by_slot) and not shape.exempt and self.policy.enabled

    def _left(self, shape: PodShape, slots: Slots) -> Ints:
        """What nodes have left for a pod."""
        left = self.left[:, slots]
        limited = self.prod_limited[slots] if shape.prod else None
        return left if limited is None or not limited.any() else np.where(limited, self.prod_left[:, slots], left)

    def _is_fresh(self, at: int) -> bool:
        return self.now - at <= self.policy.expiry_ms

    def _add(self, slot: int, pods: Sequence[tuple[Load, bool]], sign: int) -> None:
        """Pods of which so much is not seen yet are more (``sign`` 1), or fewer."""
        _subtract(self.left, slot, [load for load, _ in pods], sign)
        if self.policy.ranking.weight:
            self.score.add(slot, pods, sign)
        if self.prod_limited[slot]:
            _subtract(self.prod_left, slot, [load for load, prod in pods if prod], sign)


def _subtract(left: Ints, slot: int, loads: Sequence[Load], sign: int) -> None:
    cpu = memory = 0
    for load in loads:
        cpu += load.cpu
        memory += load.memory
    left[0, slot] -= sign * cpu
    left[1, slot] -= sign * memory


def _beyond(load: Load, seen: Load) -> Load:
    """What of an estimate was not measured yet."""
    return Load(max(0, load.cpu - seen.cpu), max(0, load.memory - seen.memory))


def _most(have: int, percent: int) -> int:
    """The largest amount that is, in rounded percent of ``have``, not above ``percent``."""
    return ((2 * percent + 1) * have - 1) // 200 if percent else NO_LIMIT
