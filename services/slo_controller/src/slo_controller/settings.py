"""What the service is told when it starts."""

from dataclasses import dataclass

from chassis.settings import ServiceSettings


@dataclass(frozen=True, slots=True)
class Settings(ServiceSettings):
    """What holds where the ConfigMap koordinator-system/slo-controller-config says nothing else, in JSON.

    ``colocation`` has the keys of ``colocation-config``, ``node_slo`` those of the spec of a NodeSLO.
    """

    colocation: str = "{}"
    node_slo: str = "{}"
