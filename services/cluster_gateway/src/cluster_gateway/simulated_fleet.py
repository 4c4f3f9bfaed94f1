"""The simulated nodes that an operator asks for: declared at the start, those too many taken away."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from cluster_gateway.domain.cluster import Cluster
from cluster_gateway.domain.simulated_nodes import SIMULATED
from cluster_gateway.gateway import Gateway
from kube import Key, Manifest

PREFIX = "sim-"


@dataclass(frozen=True, slots=True)
class Fleet:
    """So many equal nodes. ``cpu`` and ``memory`` are quantities."""

    count: int
    cpu: str
    memory: str
    gpus: int = 0

    def names(self) -> Iterator[str]:
        width = len(str(max(self.count - 1, 0)))
        return (f"{PREFIX}{number:0{width}d}" for number in range(self.count))

    def status(self) -> Manifest:
        amounts = {"cpu": self.cpu, "memory": self.memory, "pods": "110"}
        amounts |= {"nvidia.com/gpu": str(self.gpus)} if self.gpus else {}
        ready = {"type": "Ready", "status": "True", "reason": "Simulated"}
        return {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}


async def declare(gateway: Gateway, fleet: Fleet) -> None:
    """Make the nodes of ``fleet``, and go on for ever."""
    await gateway.ready.wait()
    await gateway.enact(lambda cluster: _declare(cluster, fleet))
    await asyncio.Event().wait()


def _declare(cluster: Cluster, fleet: Fleet) -> None:
    cluster.actor = "cluster_gateway"
    wanted, status = set(fleet.names()), fleet.status()
    for surplus in list(cluster.store.of_kind("Node").values()):
        if SIMULATED in surplus.annotations and surplus.name.startswith(PREFIX) and surplus.name not in wanted:
            cluster.delete(surplus)
    for name in fleet.names():
        node = cluster.store.get(Key("Node", "", name))
        if node is None:
            metadata: Manifest = {"labels": {"kubernetes.io/hostname": name}, "annotations": {SIMULATED: "true"}}
            cluster.create(Key("Node", "", name), metadata, {"spec": {}}, status)
        else:
            cluster.set_status(node, status)
