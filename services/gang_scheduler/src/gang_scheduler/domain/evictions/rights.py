"""Whose room somebody may ask for: that of less important work in its own queue, and what other queues hold above their due.

A queue may take back what it deserves and does not use, from queues that use more than they deserve, and nobody is pushed
below what it deserves or what is guaranteed to it. In a tree that is asked at each level below the nearest common queue.
Only the resources that are short count: a queue that has its share of memory does not keep its surplus of devices.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gang_scheduler.domain.queues.queue_ledger import SHARE_UNIT, QueueLedger
from gang_scheduler.domain.terms.pod_requests import PODS
from resources import Amounts


class Giver(NamedTuple):
    """A queue that others may take from. ``rank`` sorts nearest first, then by queue priority."""

    rank: tuple[int, int]
    levels: tuple[str, ...]
    """The queue and those above it, up to the nearest one that it has in common with the taker."""


def givers(ledger: QueueLedger, taker: str, ask: Mapping[str, int], short: Sequence[str]) -> dict[str, Giver]:
    """The queues from which ``taker`` may reclaim for a job that asks for ``ask``, by name."""
    queues = ledger.queues or {}
    if taker not in queues:
        return {}
    chain = ledger.chain(taker)
    found: dict[str, Giver] = {}
    for name in sorted(queues):
        if name == taker or name in chain:
            continue
        line = ledger.chain(name)
        common = next((queue for queue in chain if queue in line), "")
        mine = chain[: chain.index(common)] if common else chain
        theirs = line[: line.index(common)] if common else line
        if not mine or not all(queues[queue].reclaimable for queue in theirs if queue in queues):
            continue
        if all(may_reclaim(ledger, queue, ask) for queue in mine) and all(
            _above(ledger, queue, short) for queue in theirs
        ):
            found[name] = Giver((len(mine), queues[name].priority), theirs)
    return found


def excess(ledger: QueueLedger, queue: str, resource: str) -> int:
    """How much a queue uses above what it deserves and is guaranteed."""
    entitlement = (ledger.queues or {}).get(queue)
    used = ledger.used.get(queue, {}).get(resource, 0)
    if entitlement is None:
        return used
    return used - max(entitlement.deserved.get(resource, 0), entitlement.guarantee.get(resource, 0))


def degree(ledger: QueueLedger, queue: str, short: Iterable[str], freed: Mapping[str, int]) -> int:
    """How far a queue is above its due in what is short, in billionths of it, once it has lost ``freed``.

    A queue to which nothing is due comes first.
    """
    entitlement = (ledger.queues or {}).get(queue)
    degrees = [0]
    for name in short:
        due = max(entitlement.deserved.get(name, 0), 1) if entitlement else 1
        degrees.append(max(0, excess(ledger, queue, name) - freed.get(name, 0)) * SHARE_UNIT // due)
    return max(degrees)


def shared(short: Iterable[str], ask: Mapping[str, int]) -> tuple[str, ...]:
    """The resources by which queues are compared: those that are short, or all that are asked for when only slots are."""
    found = tuple(name for name in short if name != PODS)
    return found or tuple(name for name in ask if name != PODS)


def may_reclaim(ledger: QueueLedger, queue: str, ask: Mapping[str, int]) -> bool:
    """Whether the queue would still have no more than it deserves with ``ask`` on top."""
    entitlement = (ledger.queues or {}).get(queue)
    if entitlement is None:
        return False
    used = ledger.used.get(queue, {})
    return all(
        used.get(name, 0) + amount <= entitlement.deserved.get(name, 0) for name, amount in ask.items() if name != PODS
    )


def _above(ledger: QueueLedger, queue: str, short: Sequence[str]) -> bool:
    return any(excess(ledger, queue, name) > 0 for name in short)


@dataclass(slots=True)
class Floors:
    """How much each giving queue may still lose; counts down as lots are taken."""

    short: Sequence[str]
    levels: Mapping[str, tuple[str, ...]]
    left: dict[str, Amounts] = field(default_factory=dict)

    @classmethod
    def of(cls, ledger: QueueLedger, givers_found: Mapping[str, Giver], short: Sequence[str]) -> "Floors":
        """The floors as the books stand."""
        levels = {name: giver.levels for name, giver in givers_found.items()}
        names = {name for line in levels.values() for name in line}
        left = {name: {resource: excess(ledger, name, resource) for resource in short} for name in sorted(names)}
        return cls(short, levels, left)

    def allow(self, queue: str, freed: Mapping[str, int]) -> bool:
        """Whether the queue may lose ``freed``; a queue without a floor may lose anything."""
        levels = self.levels.get(queue)
        if levels is None:
            return True
        gives = False
        for name in self.short:
            amount = freed.get(name, 0)
            if amount > 0:
                gives = True
                for level in levels:
                    if self.left[level][name] < amount:
                        return False
        return gives

    def take(self, queue: str, freed: Mapping[str, int], sign: int = 1) -> None:
        """The queue loses ``freed``."""
        for level in self.levels.get(queue, ()):
            for name in self.short:
                self.left[level][name] -= sign * freed.get(name, 0)
