"""What the cluster gateway is told when it starts."""

from dataclasses import dataclass, field

from cluster_gateway.domain.simulated_nodes import SimulationSettings
from tidegate.services import DECIDERS


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """``services`` are those whose decisions are carried out. A snapshot is written every ``snapshot_entries`` change sets.

    ``history_entries`` is how much of the log is kept behind the newest snapshot, for replay and for explanations. With
    ``agent_account`` agents beside kubelets have to be pods of it, and are believed about their own node. ``inference_gateway`` is the
    address that names of inference services lead to, "" for their pods' alone.
    """

    services: tuple[str, ...] = DECIDERS
    simulation: SimulationSettings = field(default_factory=SimulationSettings)
    snapshot_entries: int = 5_000
    history_entries: int = 50_000
    most_edits: int = 4_000
    node_silence_seconds: int = 40
    agent_account: str = ""
    inference_gateway: str = ""
