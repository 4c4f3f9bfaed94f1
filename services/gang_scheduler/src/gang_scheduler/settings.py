"""What the service is told when it starts."""

import json
from dataclasses import dataclass
from typing import Any

from chassis.settings import ServiceSettings


@dataclass(frozen=True, slots=True)
class Settings(ServiceSettings):
    """How pods are placed (``binpack`` or ``spread``), and who may take whose room, as in the policy of a scenario."""

    placement: str = "binpack"
    preemption: bool = True
    reclaim: bool = True
    backfill: bool = True
    gang_eviction: str = "whole"
    strict_fifo: bool = False
    fifo: bool = False
    told_after_ms: int = 1000
    """How long somebody waits before conditions and Events say why. Whoever finds a place within that time is not written to."""
    scheduler_names: str = ""
    """Whose pods are placed, by their ``schedulerName``, as ``tidegate,volcano``; empty for all names that manifests of the
    field have."""
    revocable_zones: str = ""
    """The hours (UTC) of nodes that are lent, by the zone in their label ``volcano.sh/revocable-zone``: ``day=08:00-20:00``."""
    load_aware: str = "true"
    """``false``, or as JSON the arguments of Koordinator's load-aware scheduling that are not the usual ones."""

    def schedulers(self) -> frozenset[str]:
        """``scheduler_names``, read."""
        return frozenset(name for name in map(str.strip, self.scheduler_names.split(",")) if name)

    def load_arguments(self) -> Any:
        """``load_aware``, read; raises ValueError when it is no JSON."""
        return json.loads(self.load_aware)
