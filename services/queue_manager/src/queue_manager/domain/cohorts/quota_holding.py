"""Quota that is held, and quota that is promised."""

from dataclasses import dataclass, field

from kube import Key
from queue_manager.domain.cohorts.flavor_choice import Verdict
from queue_manager.domain.quotas.cluster_queue import Quotas


@dataclass(slots=True)
class Holding:
    """What is held in one ClusterQueue, or over one LocalQueue: how many workloads, and how much quota."""

    usage: Quotas = field(default_factory=dict)
    keys: dict[Key, None] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return len(self.keys)

    def add(self, key: Key, usage: Quotas, sign: int) -> None:
        """The workload ``key`` holds ``usage`` now (``sign`` 1), or no more (-1)."""
        if sign > 0:
            self.keys[key] = None
        else:
            del self.keys[key]
        for place, amount in usage.items():
            self.usage[place] = self.usage.get(place, 0) + sign * amount


@dataclass(slots=True)
class Promise:
    """Quota that is kept for a workload while ``victims`` go."""

    queue: str
    usage: Quotas
    verdict: Verdict
    victims: dict[Key, None]
