"""What the service is told when it starts."""

from dataclasses import dataclass

from chassis.settings import ServiceSettings


@dataclass(frozen=True, slots=True)
class Settings(ServiceSettings):
    """``horizontal``: whether HorizontalPodAutoscalers are acted on here; not where the cluster has a controller of them."""

    horizontal: bool = True
