"""What is known of one pod while it is on the node, shared by those who work on it."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from kube import Manifest
from node_agent.domain.containers import Container, Pod
from node_agent.domain.records import ContainerRecord, PodRecord, Stop
from node_agent.node import Node
from node_agent.preparation import PodPreparation
from node_agent.runtime.folders import PodFolder


@dataclass(slots=True)
class PodState:
    """One pod: what it is to be, what is remembered of it, and the tools to work on it."""

    node: Node
    pod: Pod
    record: PodRecord
    folder: PodFolder
    preparation: PodPreparation
    step: Callable[[], None]
    """To be called when the record was changed: decides and does what follows."""

    @property
    def manifest(self) -> Manifest:
        return self.preparation.manifest

    def container(self, name: str) -> Container:
        return next(item for item in self.pod.containers if item.name == name)

    def get(self, name: str) -> ContainerRecord:
        """What is remembered of a container."""
        return self.record.containers[name]

    def set(self, name: str, record: ContainerRecord) -> None:
        """Remember ``record`` of a container."""
        self.record = self.record.with_container(name, record)

    def group(self, name: str) -> str:
        """The control group of a container."""
        return self.preparation.group_of(name)

    def fail(self, reason: str, message: str) -> None:
        """End the pod as failed."""
        if self.record.stop is None:
            stop = Stop(self.node.clock(), self.pod.grace_seconds * 1000, reason, message)
            self.record = replace(self.record, stop=stop)
