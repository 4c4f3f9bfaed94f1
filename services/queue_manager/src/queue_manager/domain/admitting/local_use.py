"""What LocalQueues have used lately: the order of those that share a ClusterQueue by it (Kueue's AdmissionFairSharing)."""

from collections.abc import Callable, Iterable

from kube import Manifest
from queue_manager.domain.cohorts.cohort_books import CohortBooks
from queue_manager.domain.cohorts.cohort_tree import PER_MILLE, UNLIMITED
from queue_manager.domain.quotas.kueue_policy import KueuePolicy
from queue_manager.domain.shares.past_use import PastUse, past_use_part, read_past_use
from resources import Amounts, parse_amounts

PART = "admissionFairSharingStatus"
"""The part of ``status.fairSharing`` that keeps the average."""

Place = tuple[str, str]
"""Namespace and name of a LocalQueue."""


class LocalUse:
    """``status_of`` gives the status that is stored of a LocalQueue: all that is known of the past stands there."""

    def __init__(self, books: CohortBooks, policy: KueuePolicy, status_of: Callable[[Place], Manifest]) -> None:
        self._books = books
        self._policy = policy
        self._status_of = status_of

    def share(self, place: Place) -> int:
        """How much the LocalQueue has used lately: the dominant share of what its ClusterQueue could have, by its weight."""
        local = self._books.local.get(place)
        node = self._books.tree.queues.get(local.cluster_queue) if local is not None else None
        if local is None or node is None:
            return 0
        used = self._past(place).soon(self._held(place), self._books.now, self._policy.half_life_ms)
        total: dict[str, int] = {}
        for flavor, name in node.known():
            total[name] = total.get(name, 0) + max(0, node.potential((flavor, name)))
        shares = (
            amount * self._policy.weights.get(name, 1000) * PER_MILLE // max(1, total.get(name, 0))
            for name, amount in used.items()
        )
        share = max(shares, default=0)
        return share * 1000 // local.weight_milli if local.weight_milli else UNLIMITED + share

    def news(self, place: Place, now: int) -> Manifest | None:
        """The average to be stored, where other quota is held than the status says; None where it still follows from that."""
        before = _told(self._status_of(place).get("flavorsUsage") or ())
        if not self._policy.half_life_ms or before == self._held(place):
            return None
        return {PART: past_use_part(self._past(place), now, self._policy.half_life_ms)}

    def _past(self, place: Place) -> PastUse:
        status = self._status_of(place)
        return read_past_use((status.get("fairSharing") or {}).get(PART), _told(status.get("flavorsUsage") or ()))

    def _held(self, place: Place) -> Amounts:
        """What is held over the LocalQueue, of whatever flavor."""
        holding = self._books.local_holdings.get(place)
        return _summed((name, amount) for (_, name), amount in holding.usage.items()) if holding is not None else {}


def _told(flavors: Iterable[Manifest]) -> Amounts:
    """What a status says is used."""
    items = [item for flavor in flavors for item in flavor.get("resources") or ()]
    return _summed(pair for item in items for pair in parse_amounts({str(item["name"]): item.get("total", 0)}).items())


def _summed(pairs: Iterable[tuple[str, int]]) -> Amounts:
    found: Amounts = {}
    for name, amount in pairs:
        if amount:
            found[name] = found.get(name, 0) + amount
    return found
