"""Looks at the node as a whole every few seconds, and tells what it used over the last minutes."""

from collections.abc import Callable

from kube import Manifest
from node_agent.domain.colocation.samples import Use
from node_agent.domain.usage import Consumption
from node_agent.domain.windows import UseHistory
from node_agent.runtime.machine_use import machine_use

WATCH_MS = 2_000
NO_USE = Consumption(0, 0)


def more_usage(node: Manifest, programs: list[Manifest], devices: list[Manifest]) -> Manifest:
    """The parts of a NodeMetric's status beside the newest samples."""
    used = {"nodeUsage": {"devices": devices}} if devices else {}
    return {"nodeMetric": {**node, **used}, "hostApplicationMetric": programs}


class NodeWatch:
    """``pods`` tells what all pods together used since they began; None where that cannot be read as one."""

    def __init__(
        self, pods: Callable[[], Consumption | None], machine: Callable[[], Consumption] = machine_use
    ) -> None:
        self._pods, self._machine = pods, machine
        self._node, self._system = UseHistory(), UseHistory()
        self._before: tuple[int, int, int] | None = None

    def look(self, now: int) -> None:
        """Note what was used since the look before."""
        machine, pods = self._machine(), self._pods() or NO_USE
        before, self._before = self._before, (now, machine.cpu_ns, pods.cpu_ns)
        if before is None or now <= before[0]:
            return
        passed = (now - before[0]) * 1000
        node = Use(max(0, machine.cpu_ns - before[1]) // passed, machine.memory_bytes)
        of_pods = Use(max(0, pods.cpu_ns - before[2]) // passed, pods.memory_bytes)
        self._node.add(now, node)
        rest = (max(0, left - right) for left, right in zip(node, of_pods, strict=True))
        self._system.add(now, Use(*rest))

    def told(self, now: int) -> Manifest:
        """What of it belongs into the ``nodeMetric`` of a NodeMetric's status; empty lists take the place of older ones."""
        return {
            "aggregatedNodeUsages": self._node.summaries(now),
            "aggregatedSystemUsages": self._system.summaries(now),
        }
