"""What the service is told when it starts."""

from dataclasses import dataclass

from chassis.settings import ServiceSettings


@dataclass(frozen=True, slots=True)
class Settings(ServiceSettings):
    """``acts``: whether sizes are decided here; not on a cluster that has controllers of its own for them.

    ``knative`` is JSON, with the keys of Knative's ConfigMap config-autoscaler.
    """

    acts: bool = True
    knative: str = "{}"
