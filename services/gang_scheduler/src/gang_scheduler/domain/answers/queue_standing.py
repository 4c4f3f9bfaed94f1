"""How the queues stand for somebody who waits: its place in the line, what each queue above it has and may have, who uses it."""

from collections.abc import Mapping

from gang_scheduler.domain.cluster import Cluster
from gang_scheduler.domain.pods.groups import Group
from gang_scheduler.domain.pods.pod_record import requests_of
from gang_scheduler.domain.terms.revocable_pods import stated_priority
from kube import Manifest
from resources import Amounts, format_amounts

NAMED = 3


def line_of(cluster: Cluster, group: Group) -> Manifest:
    """``position`` among those who wait in its queue, from 1 (0: it is not among them), of how many, and who is before it."""
    found = [item for item in cluster.groups.values() if item.pending and item.let_in and item.queue == group.queue]
    order = sorted(found, key=lambda item: (-item.priority(cluster.classes), item.started, item.created, item.id))
    position = order.index(group) + 1 if group in order else 0
    ahead = [f"{item.id.namespace}/{item.name}" for item in order[: max(0, position - 1)][:NAMED]]
    return {
        "position": position,
        "waitingInQueue": len(order),
        "ahead": ahead,
        "priority": stated_priority(group.priority(cluster.classes)),
    }


def queues_of(cluster: Cluster, queue: str, ask: Mapping[str, int]) -> list[Manifest]:
    """The queue and those above it, from below: what is used, capability, deserved and guarantee of what is asked for."""
    ledger, found = cluster.room.ledger, []
    for name in ledger.chain(queue):
        entitlement = (ledger.queues or {}).get(name)
        if entitlement is None:
            continue
        parts = {
            "used": ledger.used.get(name, {}),
            "keptForOthers": ledger.held.get(name, {}),
            "capability": entitlement.capability,
            "deserved": entitlement.deserved,
            "guarantee": entitlement.guarantee,
        }
        shown = {part: format_amounts(_of(amounts, ask)) for part, amounts in parts.items()}
        found.append({"queue": name, **{part: amounts for part, amounts in shown.items() if amounts}})
    return found


def guaranteed_to(cluster: Cluster, queue: str, ask: Mapping[str, int]) -> list[Manifest]:
    """The other queues to which something of what is asked for is guaranteed that they do not use, most first."""
    ledger, found = cluster.room.ledger, list[tuple[int, str, Amounts]]()
    chain = ledger.chain(queue)
    for name, entitlement in (ledger.queues or {}).items():
        used = ledger.used.get(name, {})
        idle = {key: amount - used.get(key, 0) for key, amount in _of(entitlement.guarantee, ask).items()}
        idle = {key: amount for key, amount in idle.items() if amount > 0}
        if idle and name not in chain:
            found.append((-max(amount * 1000 // max(1, ask[key]) for key, amount in idle.items()), name, idle))
    return [
        {"queue": name, "unused": format_amounts(idle)} for _, name, idle in sorted(found, key=lambda x: x[:2])[:NAMED]
    ]


def used_by(cluster: Cluster, queue: str, ask: Mapping[str, int]) -> list[Manifest]:
    """The groups that use most of what is asked for in a queue or below it."""
    ledger, uses = cluster.room.ledger, list[tuple[int, str, Amounts]]()
    for group in cluster.groups.values():
        records = [r for r in group.members.values() if r.charged is not None and queue in ledger.chain(r.charged)]
        used = _of(requests_of(records), ask)
        share = max((amount * 1000 // max(1, ask[name]) for name, amount in used.items()), default=0)
        if share:
            uses.append((-share, f"{group.id.namespace}/{group.name}", used))
    return [
        {"group": name, "used": format_amounts(used)}
        for _, name, used in sorted(uses, key=lambda item: item[:2])[:NAMED]
    ]


def _of(amounts: Mapping[str, int], ask: Mapping[str, int]) -> Amounts:
    return {name: amounts[name] for name in ask if name in amounts}
