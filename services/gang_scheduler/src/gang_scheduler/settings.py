"""What the service is told when it starts."""

from dataclasses import dataclass

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
