"""What the service is told when it starts."""

from dataclasses import dataclass

from chassis.settings import ServiceSettings


@dataclass(frozen=True, slots=True)
class Settings(ServiceSettings):
    """How pods are placed: ``binpack`` or ``spread``."""

    placement: str = "binpack"
