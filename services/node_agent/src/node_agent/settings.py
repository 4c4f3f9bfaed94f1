"""The settings of a node agent, read once."""

from dataclasses import dataclass, field
from pathlib import Path

from node_agent.domain.programs import Program
from node_agent.program_list import default_folder


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """Everything that can be chosen about one agent. Times are in milliseconds, sizes in bytes, cpu in milli-cores."""

    node: str
    data_dir: Path
    """The folder that holds all that the agent and its pods write."""
    host_ip: str = "127.0.0.1"
    inventory_file: Path | None = None
    """A declared inventory (YAML or JSON) that stands in for what the machine would show."""
    labels: dict[str, str] = field(default_factory=dict)
    cgroup_parent: str = "tidegate"
    enforce: bool = True
    """Whether limits are put in force by cgroups where the machine permits it."""
    isolate: bool = True
    """Whether pods get a mount and host name namespace of their own where the machine permits it."""
    user_ids: tuple[int, int] = (60_000, 64_999)
    """The user ids, both ends included, that pods run as when the agent is root; each pod has one of its own."""
    allow_root: bool = False
    """Whether a pod that asks for user id 0 gets it."""
    visible_paths: tuple[str, ...] = ()
    """Paths that pods may get to though a folder above them is closed to their user; the agent's Python is one always."""
    programs: tuple[Program, ...] = ()
    """What stands in for images, in the order in which it is looked through."""
    environments: Path = field(default_factory=default_folder)
    """The folder of the environments that programs run in."""
    inference_gateway: str = ""
    """Where programs ask inference services (``host:port``); "" where the names of Services lead to them."""
    reserved_cpu_milli: int = 0
    reserved_memory_bytes: int = 0
    max_pods: int = 110
    pids_per_pod: int = 32_768
    log_bytes: int = 10 << 20
    log_files: int = 3
    log_retention_ms: int = 24 * 3_600_000
    """How long the logs of a pod that is gone are kept."""
    log_check_ms: int = 2_000
    usage_interval_ms: int = 15_000
    """How often pods and the node are measured, and a report says what they used since the last time."""
    backoff_ms: int = 10_000
    backoff_limit_ms: int = 300_000
    report_retry_ms: int = 200
    report_retry_limit_ms: int = 10_000
    secret_retry_ms: int = 2_000
