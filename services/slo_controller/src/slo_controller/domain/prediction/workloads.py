"""Whose use is remembered: the containers of a workload, over all of its pods and those that were before."""

from dataclasses import dataclass

from kube import Key, Object, Store, kind_id

REPLICA_SET = "ReplicaSet.apps"


@dataclass(frozen=True, slots=True, order=True)
class Workload:
    """What made a pod, or the pod itself where nobody did. ``kind`` is with its group."""

    namespace: str
    kind: str
    name: str

    def text(self) -> str:
        return f"{self.namespace}/{self.kind}/{self.name}"

    @classmethod
    def of(cls, text: str) -> "Workload":
        return cls(*text.split("/"))


def workload_of(pod: Object, store: Store) -> Workload:
    """The workload of ``pod``: its controller, and of a ReplicaSet the Deployment that made that."""
    owner = _owner(pod)
    if owner.kind == REPLICA_SET:
        found = store.get(Key(REPLICA_SET, owner.namespace, owner.name))
        owner = _owner(found) if found is not None else owner
    return owner


def _owner(item: Object) -> Workload:
    owner = item.controller
    if owner is None:
        return Workload(item.namespace, item.kind, item.name)
    kind = kind_id(str(owner.get("apiVersion") or ""), str(owner.get("kind") or ""))
    return Workload(item.namespace, kind, str(owner.get("name") or ""))
