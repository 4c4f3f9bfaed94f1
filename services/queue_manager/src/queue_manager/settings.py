"""What the service is told when it starts."""

from dataclasses import dataclass

from chassis.settings import ServiceSettings


@dataclass(frozen=True, slots=True)
class Settings(ServiceSettings):
    """How queues share. ``overcommit`` is the factor of the enqueue gate, empty for no gate.

    ``kueue`` is JSON: the parts ``waitForPodsReady`` and ``admissionFairSharing`` of Kueue's Configuration.
    """

    overcommit: str = ""
    queueing: str = "proportion"
    strict_fifo: bool = False
    fair_sharing: bool = False
    fifo: bool = False
    kueue: str = "{}"
