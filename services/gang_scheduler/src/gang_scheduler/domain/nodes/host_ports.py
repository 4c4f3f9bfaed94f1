"""Which ports of which node are taken."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from gang_scheduler.domain.columns.vectors import Ints, Mask
from gang_scheduler.domain.nodes.node_table import NodeTable
from gang_scheduler.domain.pods.pod_shape import HostPort, PodShape


@dataclass(slots=True)
class PortIndex:
    """For every port that a pod on some node has, or that is reserved there, on which nodes."""

    table: NodeTable
    _taken: dict[HostPort, Ints] = field(default_factory=dict)

    def move(self, ports: Iterable[HostPort], slot: int, count: int) -> None:
        """Somebody with ``ports`` comes to a node (1) or leaves it (-1)."""
        for port in ports:
            self._vector(port)[slot] += count

    def masks(self, shape: PodShape) -> Iterator[tuple[str, Mask]]:
        """Every port of ``shape`` with the nodes where it is free."""
        for port in shape.ports:
            free = np.ones(self.table.size, np.bool_)
            for other in self._taken:
                if port.conflicts(other):
                    free &= self._vector(other) == 0
            yield f"have no free host port {port.port}/{port.protocol}", free

    def _vector(self, port: HostPort) -> Ints:
        taken = self._taken.get(port)
        if taken is None:
            taken = np.zeros(0, np.int64)
        if len(taken) < self.table.size:
            taken = np.concatenate([taken, np.zeros(self.table.size - len(taken), np.int64)])
        self._taken[port] = taken
        return taken
