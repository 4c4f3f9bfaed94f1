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
    load_aware: str = "true"
    """``false``, or as JSON the arguments of Koordinator's load-aware scheduling that are not the usual ones."""

    def load_arguments(self) -> Any:
        """``load_aware``, read; raises ValueError when it is no JSON."""
        return json.loads(self.load_aware)
