"""Which processes make up the system on one machine, and in which order they start and stop."""

import os
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from bus.server import ServerSettings, command
from tidegate.services import DECIDERS
from tidegate_cli.supervisor.priorities import NICENESS
from tidegate_cli.supervisor.request_path import RequestPath
from tidegate_cli.supervisor.service_settings import ServiceSetting

CONTROL = ("admission", *DECIDERS, "inference_gateway")
STOP_ORDER = ("node_agent", "cluster_gateway", "nats")
"""Behind ``CONTROL``: who decides stops first, so that nobody reacts to the pods that the node ends; the log goes last."""


@dataclass(frozen=True, slots=True)
class UpSettings:
    """What `tidegate up` was asked for. ``port`` 0 takes the usual one, or a free one where that is taken.

    With a ``kubeconfig`` the services drive the cluster that it names (in ``context``), and no pod runs on this machine.
    """

    data_dir: Path
    port: int = 0
    sim_nodes: int = 0
    sim_cpu: str = "32"
    sim_memory: str = "128Gi"
    sim_gpus: int = 0
    local_node: bool = True
    inventory: Path | None = None
    sync: str = "1s"
    trace: str = "off"
    metrics: bool = False
    log_level: str = "INFO"
    kubeconfig: Path | None = None
    context: str = ""
    scheduler_names: str = ""
    webhook_url: str = ""
    service_settings: tuple[ServiceSetting, ...] = ()

    @property
    def local(self) -> bool:
        """Whether the cluster is kept here, and not by an API server."""
        return self.kubeconfig is None


@dataclass(frozen=True, slots=True)
class Program:
    """One process. ``health_port`` is where it answers gRPC health checks; 0 for none.

    ``when_orphaned`` is the signal that it gets when the supervisor is killed, ``niceness`` by how much it yields to the others.
    """

    name: str
    command: tuple[str, ...]
    health_port: int = 0
    environment: dict[str, str] = field(default_factory=dict)
    when_orphaned: signal.Signals = signal.SIGKILL
    niceness: int = 0


class Ports(NamedTuple):
    """Where one service listens; ``requests`` is where those of inference services are taken, None for who needs not know."""

    health: int
    metrics: int
    requests: RequestPath | None = None


def nats_program(settings: UpSettings, port: int, token: str) -> Program:
    """The embedded NATS server."""
    server = ServerSettings(settings.data_dir / "nats", port, token, sync=settings.sync)
    return Program("nats", tuple(command(server)))


def service_program(name: str, settings: UpSettings, nats_port: int, token: str, ports: Ports) -> Program:
    """One service. The token goes by the environment: a command line can be read by everybody on the machine."""
    flags = {
        "nats-url": f"nats://127.0.0.1:{nats_port}",
        "data-dir": str(settings.data_dir),
        "health-port": str(ports.health),
        "metrics-port": str(ports.metrics) if settings.metrics else "0",
        "trace": settings.trace,
        "log-level": settings.log_level,
        **_own_flags(name, settings),
        **_request_flags(name, ports.requests),
        **{one.name.replace("_", "-"): one.value for one in settings.service_settings if one.service == name},
    }
    words = [word for flag, value in flags.items() for word in (f"--{flag}", value)]
    kept = {key: value for key, value in os.environ.items() if not key.startswith("TIDEGATE_")}
    environment = {**kept, "TIDEGATE_NATS_TOKEN": token, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    # The agent ends the pods' processes first, the request path its proxy; the others have nothing to put in order that is not
    # in the log.
    when_orphaned = signal.SIGTERM if name in ("node_agent", "inference_gateway") else signal.SIGKILL
    line = (sys.executable, "-m", f"{name}.main", *words)
    return Program(name, line, ports.health, environment, when_orphaned, NICENESS.get(name, 0))


def _own_flags(name: str, settings: UpSettings) -> dict[str, str]:
    if name == "cluster_gateway" and settings.kubeconfig is not None:
        return {"driver": "kubernetes", "kubeconfig": str(settings.kubeconfig), "kube-context": settings.context}
    if name == "admission" and settings.kubeconfig is not None:
        cluster = {"kubeconfig": str(settings.kubeconfig), "kube-context": settings.context, "access": "users,cluster"}
        return {**cluster, **(_webhook_flags(settings.webhook_url) if settings.webhook_url else {})}
    if name == "inference_autoscaler" and not settings.local:
        return {"horizontal": "false"}
    if name == "gang_scheduler":
        names = settings.scheduler_names or ("" if settings.local else "tidegate")
        # Where this machine is the only node nothing is gained by waiting until it is less busy with other things.
        alone = settings.local and settings.local_node and not settings.sim_nodes
        return {**({"scheduler-names": names} if names else {}), **({"load-aware": "false"} if alone else {})}
    if name == "cluster_gateway":
        return {
            "sim-nodes": str(settings.sim_nodes),
            "sim-cpu": settings.sim_cpu,
            "sim-memory": settings.sim_memory,
            "sim-gpus": str(settings.sim_gpus),
        }
    if name == "node_agent":
        declared = {"inventory": str(settings.inventory)} if settings.inventory else {}
        return {"drain-on-stop": "true", **declared}
    return {}


def _request_flags(name: str, path: RequestPath | None) -> dict[str, str]:
    """Who takes requests for inference services is told where; so is who runs programs that ask them, and who says what names mean."""
    if path is None:
        return {}
    if name == "inference_gateway":
        return {"gateway-port": str(path.port), **({"inner-host": path.inner} if path.inner else {})}
    if name == "cluster_gateway":
        return {"inference-gateway": path.inner} if path.inner else {}
    return {"inference-gateway": path.address}


def _webhook_flags(url: str) -> dict[str, str]:
    return {"webhook-url": url, "webhook-host": "0.0.0.0", "webhook-port": str(urlsplit(url).port or 443)}
