"""What the service is told when it starts."""

from dataclasses import dataclass

from chassis.settings import ServiceSettings


@dataclass(frozen=True, slots=True)
class Settings(ServiceSettings):
    """What is to be moved, and how gently. All but the numbers are JSON, in the words of Koordinator's and Kubernetes' descheduler.

    ``low_node_load`` has the keys of LowNodeLoadArgs, ``migration`` those of MigrationControllerArgs, ``strategies`` a key
    for each plug-in that is on, with its arguments. With ``dry_run`` a plan is made, and nothing moves by it.
    """

    low_node_load: str = "{}"
    migration: str = "{}"
    strategies: str = "{}"
    interval_seconds: int = 120
    dry_run: bool = False
