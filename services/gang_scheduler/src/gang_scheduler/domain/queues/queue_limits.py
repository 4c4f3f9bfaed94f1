"""Why a queue may not take more: it is closed, a capability is in the way, or what is guaranteed to others."""

from collections.abc import Mapping
from typing import NamedTuple

from gang_scheduler.domain.queues.entitlement import Entitlement
from gang_scheduler.domain.queues.queue_ledger import CLUSTER, QueueLedger
from resources.amounts import format_amount


class Denial(NamedTuple):
    """Why a queue may not take more. ``queue`` is where it failed: the queue itself, one above it, or the cluster."""

    queue: str
    reason: str
    message: str
    never: bool = False
    """Whether it could not start even if the queue used nothing."""


def _closed(ledger: QueueLedger, queue: str) -> Denial | None:
    """Why nothing new may start in the queue, whatever it asks for."""
    assert ledger.queues is not None, "asked before entitlements were heard"
    if queue not in ledger.queues:
        return Denial(queue, "QueueMissing", f"{_title(queue)} does not exist")
    if not ledger.queues[queue].open:
        return Denial(queue, "QueueClosed", f"queue {queue} is closed: running work goes on, nothing new starts")
    return None


def denial_of(ledger: QueueLedger, queue: str, requests: Mapping[str, int], who: str) -> Denial | None:
    """Why ``who`` may not take ``requests`` now; None when it may. Only the resources that it asks for count."""
    closed = _closed(ledger, queue)
    if closed:
        return closed
    assert ledger.queues is not None
    for name in ledger.chain(queue):
        entitlement = ledger.queues.get(name)
        if entitlement and entitlement.capability:
            denial = _over_capability(ledger, entitlement, requests, who)
            if denial:
                return denial
    return _over_guarantees(ledger, queue, requests, who) if ledger.guaranteed else None


def _over_capability(ledger: QueueLedger, queue: Entitlement, requests: Mapping[str, int], who: str) -> Denial | None:
    used = ledger.used.get(queue.name, {})
    for name, amount in requests.items():
        limit = queue.capability.get(name)
        if limit is None or used.get(name, 0) + amount <= limit:
            continue
        message = (
            f"{_title(queue.name)}: {name} capability {format_amount(name, limit)}, "
            f"used {format_amount(name, used.get(name, 0))}, {who} needs {format_amount(name, amount)}"
        )
        if amount > max(limit, queue.maximum.get(name, 0)):
            return Denial(queue.name, "NeverFits", message + ", so it can never start", never=True)
        return Denial(queue.name, "QueueCapability", message)
    return None


def _over_guarantees(ledger: QueueLedger, queue: str, requests: Mapping[str, int], who: str) -> Denial | None:
    """Whether the job would take what is guaranteed to others and not used by them."""
    for name, amount in requests.items():
        denial = _takes_guaranteed(ledger, queue, name, amount, who)
        if denial:
            return denial
    return None


def _takes_guaranteed(ledger: QueueLedger, queue: str, resource: str, amount: int, who: str) -> Denial | None:
    """Level by level from below: what is used, what is asked for and what is kept for others must fit the limit."""
    assert ledger.queues is not None
    kept = 0
    chain = ledger.chain(queue)
    for child, parent in zip(chain, (*chain[1:], CLUSTER), strict=True):
        if child not in ledger.queues:
            return None
        if ledger.used.get(child, {}).get(resource, 0) + amount <= ledger.queues[child].guarantee.get(resource, 0):
            return None
        siblings = ledger.children.get(parent, [])
        kept += sum(_kept_for(ledger, sibling, resource) for sibling in siblings if sibling != child)
        limits = ledger.queues[parent].capability if parent in ledger.queues else ledger.supply
        taken = _used_in(ledger, parent, resource)
        if kept and resource in limits and taken + amount + kept > limits[resource]:
            where = f"queue {parent}" if parent else "the cluster"
            message = (
                f"queue {queue}: of {format_amount(resource, limits[resource])} {resource} in {where} "
                f"{format_amount(resource, taken)} is used and {format_amount(resource, kept)} is guaranteed "
                f"to other queues, {who} needs {format_amount(resource, amount)}"
            )
            return Denial(CLUSTER, "GuaranteedToOthers", message)
    return None


def _used_in(ledger: QueueLedger, queue: str, resource: str) -> int:
    names = (queue,) if queue else ledger.children.get(CLUSTER, ())
    return sum(ledger.used.get(name, {}).get(resource, 0) for name in names)


def _kept_for(ledger: QueueLedger, queue: str, resource: str) -> int:
    """What is guaranteed to a queue, or to those below it, and not used by them, as far as it may use more at all."""
    assert ledger.queues is not None
    used, limits = ledger.used.get(queue, {}).get(resource, 0), ledger.queues[queue].capability
    own = ledger.queues[queue].guarantee.get(resource, 0) - used
    kept = max(own, sum(_kept_for(ledger, child, resource) for child in ledger.children.get(queue, ())), 0)
    return min(kept, max(0, limits[resource] - used)) if resource in limits else kept


def _title(queue: str) -> str:
    """What people call it: ``queue a``, or ``quota a`` where the name says the kind."""
    return queue.replace("/", " ", 1) if "/" in queue else f"queue {queue}"
