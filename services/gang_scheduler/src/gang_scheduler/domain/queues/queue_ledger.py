"""What each queue uses, charged to it and to every queue above it; in which order queues are served."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gang_scheduler.domain.queues.entitlement import Entitlement
from resources import Amounts
from resources.decay import averaged

CLUSTER = ""
"""Stands for the whole cluster where a queue's name is meant."""

SHARE_UNIT = 1_000_000_000

SAMPLE_MS = 300_000
"""Present use counts as if it went on for so long, so that who was just served stands behind."""

QueueOrder = tuple[tuple[int, int, str, str], ...]
"""Priority, share, creation and name: of the queue, or of those above it and then of the queue."""


class PastUse(NamedTuple):
    """What a queue used on average at the moment ``at`` (ms since the epoch), and what it used from then on."""

    amounts: Amounts
    at: int
    used: Amounts


_NEVER = PastUse({}, 0, {})
_NONE: tuple[Mapping[str, int], int] = ({}, 0)


@dataclass(slots=True)
class QueueLedger:
    """``queues`` is None until the first entitlements were heard; until then nobody may take anything."""

    queues: dict[str, Entitlement] | None = None
    all_strict: bool = False
    """Whether every queue is strict, whatever it says."""

    by_age: bool = False
    """Whether those of a queue are served by age, whatever their priority."""

    created: dict[str, str] = field(default_factory=dict)
    used: dict[str, Amounts] = field(default_factory=dict)
    supply: Amounts = field(default_factory=dict)
    """What all nodes have together."""

    released: set[str] = field(default_factory=set)
    """Queues that used less or were given other limits since this was cleared."""

    used_before: dict[str, Amounts] = field(default_factory=dict)
    """What was used when limits changed last."""

    held: dict[str, Amounts] = field(default_factory=dict)
    """What of ``used`` nobody uses yet, because it is kept for somebody."""

    levels: bool = False
    """Whether queues are compared level by level from the root, and not by their own shares alone."""

    half_life_ms: int = 0
    """After how long past use counts half; 0 where only present use counts."""

    past: dict[str, PastUse] = field(default_factory=dict)
    """What queues used before, where that orders them."""

    now: int = 0
    """The time that it is, in milliseconds since the epoch."""

    children: dict[str, list[str]] = field(default_factory=dict)
    """The queues below each, and below CLUSTER."""

    guaranteed: bool = False
    """Whether anything is guaranteed to anybody."""

    _chains: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def hear(self, queues: dict[str, Entitlement]) -> bool:
        """New entitlements are in force; returns whether limits or the tree changed, so that usage has to be charged anew."""
        before = self.queues or {}
        changed = {
            name
            for name in before.keys() | queues.keys()
            if name not in before or name not in queues or before[name].limits != queues[name].limits
        }
        self.queues = queues
        self._chains.clear()
        self.children = {}
        for name, queue in queues.items():
            self.children.setdefault(queue.parent if queue.parent in queues else CLUSTER, []).append(name)
        self.guaranteed = any(queue.guarantee for queue in queues.values())
        if changed:
            self.released |= changed | {CLUSTER}
            self.used_before, self.used, self.held = self.used, {}, {}
        return bool(changed)

    def hear_order(self, order: Mapping[str, Any]) -> None:
        """How queues are ordered, as far as it is not by present use alone."""
        self.levels = bool(order.get("levels"))
        self.half_life_ms = int(order.get("half_life_ms") or 0)
        self.past = {
            str(name): PastUse(dict(item["amounts"]), int(item["at"]), dict(item["used"]))
            for name, item in (order.get("past") or {}).items()
        }

    def charge(self, queue: str, requests: Mapping[str, int], count: int) -> None:
        """``count`` pods with ``requests`` start in ``queue``; a negative count ends them."""
        for name in self.chain(queue):
            used = self.used.get(name)
            if used is None:
                used = self.used[name] = {}
            for resource, amount in requests.items():
                used[resource] = used.get(resource, 0) + amount * count

    def hold(self, queue: str, amounts: Amounts) -> None:
        """Keep ``amounts`` of what this one queue may use for somebody, instead of what was kept before."""
        before = self.held.pop(queue, {})
        used = self.used.setdefault(queue, {}) if before or amounts else {}
        for resource in before.keys() | amounts.keys():
            used[resource] = used.get(resource, 0) + amounts.get(resource, 0) - before.get(resource, 0)
        if amounts:
            self.held[queue] = amounts

    def release(self, queue: str) -> None:
        """Something ended for good in the queue: whoever waits for it or those above it may look again."""
        self.released.update(self.chain(queue), (CLUSTER,))

    def chain(self, queue: str) -> tuple[str, ...]:
        """The queue and those above it, from below."""
        chain = self._chains.get(queue)
        if chain is None:
            names = [queue]
            while (known := (self.queues or {}).get(names[-1])) and known.parent and known.parent not in names:
                names.append(known.parent)
            chain = self._chains[queue] = tuple(names)
        return chain

    def lack(self, queue: str, requests: Mapping[str, int]) -> tuple[str, Amounts] | None:
        """The first capability that ``requests`` would break: its queue, and by how much."""
        for name in self.chain(queue):
            entitlement = (self.queues or {}).get(name)
            used = self.used.get(name, {})
            limits = entitlement.capability if entitlement else {}
            over = {key: used.get(key, 0) + need - limits[key] for key, need in requests.items() if key in limits}
            if any(amount > 0 for amount in over.values()):
                return name, {key: amount for key, amount in over.items() if amount > 0}
        return None

    def share(self, queue: str) -> int:
        """Used by deserved of the most used resource, in billionths; what it does not deserve at all counts as a whole cluster.

        Queues of which nothing is known to be deserved, as their work has just come, come after those within their share,
        by what they use of the cluster and their weight: that is what they will deserve.
        """
        entitlement = (self.queues or {}).get(queue)
        used = self._counted(queue)
        if not used or entitlement is None:
            return 0
        if not entitlement.deserved:
            return SHARE_UNIT + self._part(used) // entitlement.weight
        return max(_share(used.get(name, 0), amount) for name, amount in entitlement.deserved.items())

    def _part(self, used: Mapping[str, int]) -> int:
        """The part of what all nodes have that is used of the most used resource, in billionths."""
        parts = (amount * SHARE_UNIT // self.supply[name] for name, amount in used.items() if self.supply.get(name))
        return max(parts, default=0)

    def _counted(self, queue: str) -> Amounts:
        """What counts as used: what is used now, or the average that it will be soon."""
        used = self.used.get(queue) or {}
        if not self.half_life_ms:
            return used
        past = self.past.get(queue, _NEVER)
        since = max(0, self.now - past.at) if past.at else 0
        until_now = averaged(past.amounts, past.used, since, self.half_life_ms)
        return averaged(until_now, used, SAMPLE_MS, self.half_life_ms)

    def has_due(self, queue: str) -> bool:
        """Whether the queue deserves more of anything than it uses."""
        entitlement = (self.queues or {}).get(queue)
        used = self.used.get(queue, {})
        return entitlement is not None and any(used.get(key, 0) < due for key, due in entitlement.deserved.items())

    def has_excess(self, queue: str) -> bool:
        """Whether the queue uses more of anything than it deserves."""
        entitlement = (self.queues or {}).get(queue)
        due = entitlement.deserved if entitlement else {}
        return any(amount > due.get(key, 0) for key, amount in self.used.get(queue, {}).items() if key != "pods")

    def order(self, queue: str) -> QueueOrder:
        """The queue's place: by priority, share, creation, name; level by level where that is chosen (hierarchical DRF)."""
        if not self.levels:
            return (self._place(queue),)
        return tuple(self._place(name) for name in reversed(self.chain(queue)))

    def _place(self, queue: str) -> tuple[int, int, str, str]:
        entitlement = (self.queues or {}).get(queue)
        priority = entitlement.priority if entitlement else 0
        return -priority, self.share(queue), self.created.get(queue, ""), queue

    def capped(self, queue: str) -> bool:
        """Whether the queue or one above it has a limit that waiting work may run into."""
        known = self.queues or {}
        return self.guaranteed or any(name in known and known[name].capability for name in self.chain(queue))

    def strict(self, queue: str) -> bool:
        """Whether nobody may pass the head of the queue."""
        entitlement = (self.queues or {}).get(queue)
        return entitlement is not None and (self.all_strict or entitlement.strict_fifo)

    def excess(self) -> list[str]:
        """Queues that are above their capability, in words; what was used when it was lowered is allowed."""
        return [
            f"queue {name} uses {amount} {resource} of {limit}"
            for name, queue in (self.queues or {}).items()
            for resource, limit in queue.capability.items()
            if (amount := self.used.get(name, {}).get(resource, 0) - self.held.get(name, {}).get(resource, 0))
            > max(limit, self.used_before.get(name, {}).get(resource, 0))
        ]


def total_of(parts: Iterable[tuple[Mapping[str, int], int]]) -> Amounts:
    """The sum of requests, each so many times."""
    # Pods of one shape share one mapping: each is multiplied out once.
    counts: dict[int, tuple[Mapping[str, int], int]] = {}
    for requests, count in parts:
        counts[id(requests)] = requests, count + counts.get(id(requests), _NONE)[1]
    total: Amounts = {}
    for requests, count in counts.values():
        _add(total, requests, count)
    return total


def _share(used: int, deserved: int) -> int:
    if deserved <= 0:
        return used and SHARE_UNIT * SHARE_UNIT
    return used * SHARE_UNIT // deserved


def _add(total: Amounts, requests: Mapping[str, int], count: int) -> None:
    for name, amount in requests.items():
        total[name] = total.get(name, 0) + amount * count
