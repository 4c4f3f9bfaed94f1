"""What is read of a cluster: everything of the kinds that Tidegate takes, and whatever else runs there that acts on them."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import yaml

from kube import Manifest, Object, Store


@dataclass(frozen=True, slots=True)
class Program:
    """A workload that runs a controller: ``kind`` as kubectl says it, ``image`` its name without registry and tag."""

    kind: str
    namespace: str
    name: str
    image: str

    @property
    def words(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(slots=True)
class Cluster:
    """``store`` holds the objects of the kinds that the cluster serves of ours; ``unread`` says of a kind why it could not be
    listed; ``webhooks`` are registrations of webhooks, kind and all."""

    store: Store = field(default_factory=Store)
    unread: dict[str, str] = field(default_factory=dict)
    webhooks: list[Manifest] = field(default_factory=list)

    def objects(self, kind: str) -> Iterable[Object]:
        """All objects of ``kind``."""
        return self.store.of_kind(kind).values()

    def programs(self) -> list[Program]:
        """Every container that workloads of the cluster run, other than those scaled to nothing."""
        found = []
        for kind in ("Deployment.apps", "StatefulSet.apps", "DaemonSet.apps"):
            for workload in self.objects(kind):
                if workload.spec.get("replicas", 1):
                    found += list(_programs(workload, kind.partition(".")[0], workload.spec.get("template") or {}))
        # Static pods have no workload: the control plane of clusters that kubeadm made.
        for pod in self.objects("Pod"):
            if pod.namespace == "kube-system" and not _controlled(pod):
                found += list(_programs(pod, "Pod", pod.body))
        return found

    def configuration(self, config_map: Object) -> Iterable[tuple[str, Manifest]]:
        """The entries of ``config_map`` that are YAML (or JSON) mappings, by name."""
        for name, text in sorted((config_map.body.get("data") or {}).items()):
            try:
                content = yaml.safe_load(str(text))
            except yaml.YAMLError:
                continue
            if isinstance(content, dict):
                yield name, content


def _programs(workload: Object, kind: str, template: Manifest) -> Iterable[Program]:
    for container in (template.get("spec") or {}).get("containers") or ():
        image = str(container.get("image") or "").partition("@")[0].rpartition("/")[2].partition(":")[0]
        yield Program(kind, workload.namespace, workload.name, image)


def _controlled(pod: Object) -> bool:
    return pod.controller is not None and pod.controller.get("kind") != "Node"
