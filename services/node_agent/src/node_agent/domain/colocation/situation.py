"""All that a decision about a node rests on."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kube.normalization import PLAIN_MILLI
from node_agent.domain.colocation.machine import Machine
from node_agent.domain.colocation.node_slo import NodeSlo
from node_agent.domain.colocation.pods import NodePod
from node_agent.domain.colocation.samples import Sample


@dataclass(frozen=True, slots=True)
class Situation:
    """A node at ``now``. ``sample`` is the newest one; one that is older than ``stale_ms`` tells nothing of now."""

    now: int
    slo: NodeSlo
    machine: Machine
    pods: Mapping[str, NodePod]
    sample: Sample | None
    stale_ms: int

    @property
    def fresh(self) -> Sample | None:
        """The newest sample, if it is not too old. One from the future was taken by a clock that has jumped since."""
        sample = self.sample
        return sample if sample is not None and 0 <= self.now - sample.at <= self.stale_ms else None

    @property
    def on_its_cores(self) -> "Situation":
        """The situation with the limits of pods counted in the cores that the machine has."""
        ratio = self.machine.core_milli
        if ratio == PLAIN_MILLI:
            return self
        return replace(self, pods={uid: pod.on_cores(ratio) for uid, pod in self.pods.items()})

    def used(self, pods: Iterable[NodePod]) -> int:
        """The CPU that ``pods`` used, in milli-cores."""
        if self.sample is None:
            return 0
        known = self.sample.pods
        return sum(known[pod.uid].cpu_milli for pod in pods if pod.uid in known)

    @property
    def best_effort(self) -> list[NodePod]:
        return [pod for pod in self.pods.values() if not pod.online]
