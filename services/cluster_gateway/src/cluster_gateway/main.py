"""Wiring: settings → gateway → process."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from chassis.process import Context, Parts, run
from chassis.settings import ServiceSettings
from cluster_gateway.gateway import Gateway
from cluster_gateway.room import Room
from cluster_gateway.secrets import FileSecrets
from cluster_gateway.settings import GatewaySettings
from cluster_gateway.simulated_fleet import Fleet, declare
from kube import parse_duration
from kube.kinds import KINDS

LOCAL, KUBERNETES = "local", "kubernetes"
NOT_READ = frozenset(("Event", "Endpoints"))
"""Kinds that nobody decides by, and that change all the time."""


@dataclass(frozen=True, slots=True)
class Settings(ServiceSettings):
    """``sim_nodes`` simulated nodes of ``sim_cpu``, ``sim_memory`` and ``sim_gpus`` live beside those that have an agent.

    With the driver ``kubernetes`` the cluster is the one of ``kubeconfig`` (of its context ``kube_context``, else the current
    one), or the one in which this runs as a pod when that is empty; there are no simulated nodes then. With ``agent_account``
    (``system:serviceaccount:<namespace>:<name>``) node agents have to be pods of it, and each is believed about its own node alone.

    With less than ``reserve_mib`` free in the data folder users' objects are refused; 0 refuses none.
    Names of inference services lead to the address ``inference_gateway``; without one to the services' pods (driver ``local``).
    """

    driver: str = "local"
    kubeconfig: str = ""
    kube_context: str = ""
    agent_account: str = ""
    sim_nodes: int = 0
    sim_cpu: str = "32"
    sim_memory: str = "128Gi"
    sim_gpus: int = 0
    sim_pod_start: str = "0s"
    snapshot_entries: int = 5_000
    reserve_mib: int = 64
    inference_gateway: str = ""


def uids() -> Iterator[str]:
    """Random UUIDs (version 4) without end, written out directly: `uuid.uuid4` takes five times as long."""
    while True:
        pool = os.urandom(16 * 256).hex()
        for at in range(0, len(pool), 32):
            variant = "89ab"[int(pool[at + 16], 16) & 3]
            yield (
                f"{pool[at : at + 8]}-{pool[at + 8 : at + 12]}-4{pool[at + 13 : at + 16]}-"
                f"{variant}{pool[at + 17 : at + 20]}-{pool[at + 20 : at + 32]}"
            )


async def build(settings: Settings, context: Context) -> Parts:
    """The parts of the service."""
    if settings.driver == KUBERNETES:
        return await _on_kubernetes(settings, context)
    if settings.driver != LOCAL:
        raise SystemExit(f"driver: {settings.driver!r} is neither {LOCAL!r} nor {KUBERNETES!r}")
    base = GatewaySettings(snapshot_entries=settings.snapshot_entries, inference_gateway=settings.inference_gateway)
    simulation = replace(base.simulation, pod_start_ms=parse_duration(settings.sim_pod_start))
    gateway = Gateway(
        context.bus,
        context.clock,
        replace(base, simulation=simulation),
        FileSecrets(settings.data_dir / "secrets"),
        uids().__next__,
        holder=settings.holder,
        measures=context.measures,
        tracer=context.tracer,
        no_room=Room(settings.data_dir, settings.reserve_mib << 20).complaint,
    )
    fleet = Fleet(settings.sim_nodes, settings.sim_cpu, settings.sim_memory, settings.sim_gpus)
    return Parts(
        tasks={"gateway": gateway.run(), "fleet": declare(gateway, fleet)},
        ready=(gateway.ready,),
        stopping=(gateway.snapshot,),
    )


async def _on_kubernetes(settings: Settings, context: Context) -> Parts:
    # The official client takes half a second to be loaded: only who needs it waits for it.
    from apiserver.access import NoAccess, load
    from apiserver.api import Api
    from cluster_gateway.kubernetes.gateway import KubernetesGateway

    try:
        access = await load(Path(settings.kubeconfig) if settings.kubeconfig else None, settings.kube_context)
    except NoAccess as error:
        raise SystemExit(str(error)) from None
    gateway = KubernetesGateway(
        context.bus,
        context.clock,
        GatewaySettings(snapshot_entries=settings.snapshot_entries, agent_account=settings.agent_account),
        Api(access),
        frozenset(KINDS) - NOT_READ,
        holder=settings.holder,
        measures=context.measures,
        tracer=context.tracer,
    )
    return Parts(tasks={"gateway": gateway.run()}, ready=(gateway.ready,), stopping=(gateway.snapshot,))


def main() -> None:
    """Run the service until it is told to stop."""
    run("cluster_gateway", Settings, build)


if __name__ == "__main__":
    main()
