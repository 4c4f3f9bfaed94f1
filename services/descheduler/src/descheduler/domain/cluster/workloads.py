"""Whose pods they are, how many there should be, and how many of them serve."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from descheduler.domain.cluster.pod_traits import POD, is_active
from kube import Key, Manifest, Object, Store, kind_id
from kube.kinds import KINDS
from kube.pods import is_ready

_DEEPEST = 8
"""So many owners above each other are followed: who owns himself is not followed for ever."""


class Workload(NamedTuple):
    """The topmost controller of pods. ``item`` is None for one that is not known here."""

    uid: str
    kind: str
    namespace: str
    name: str
    item: Object | None

    def __str__(self) -> str:
        return f"{self.kind.partition('.')[0]} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Workloads:
    """Asks the store, so that nothing has to be kept up to date."""

    store: Store

    def of(self, pod: Object) -> Workload | None:
        """The controller that makes the pod again; None for a bare one."""
        owner = pod.controller
        found: Workload | None = None
        for _ in range(_DEEPEST):
            if owner is None:
                break
            found = self._named(owner, pod.namespace)
            owner = found.item.controller if found.item is not None else None
        return found

    def _named(self, owner: Manifest, namespace: str) -> Workload:
        kind = kind_id(str(owner.get("apiVersion") or ""), str(owner.get("kind") or ""))
        name, uid = str(owner.get("name") or ""), str(owner.get("uid") or "")
        namespaced = kind not in KINDS or KINDS[kind].namespaced
        item = self.store.get(Key(kind, namespace if namespaced else "", name))
        if item is not None and item.uid != uid:
            item = None
        return Workload(uid, kind, namespace, name, item)

    def pods(self, workload: Workload) -> list[Object]:
        """The pods that it has, by key."""
        return sorted(self._below(workload.uid, _DEEPEST), key=lambda pod: pod.key)

    def _below(self, uid: str, depth: int) -> Iterator[Object]:
        for item in self.store.owned_by(uid) if depth else ():
            if item.kind == POD:
                yield item
            else:
                yield from self._below(item.uid, depth - 1)

    def expected(self, workload: Workload) -> int:
        """How many pods there should be now; as many as there are where the workload does not say."""
        item = workload.item
        found = None if item is None else _expected(item)
        return sum(map(is_active, self.pods(workload))) if found is None else found


def serves(pod: Object) -> bool:
    """Whether a pod counts as available."""
    return is_active(pod) and is_ready(pod)


def _expected(item: Object) -> int | None:
    spec = item.spec
    match item.kind:
        case "Job.batch":
            parallel = _whole(spec.get("parallelism"), 1)
            completions = spec.get("completions")
            left = parallel if completions is None else _whole(completions, 1) - _whole(item.status.get("succeeded"), 0)
            return max(0, min(parallel, left))
        case "Job.batch.volcano.sh":
            return sum(_whole(task.get("replicas"), 1) for task in spec.get("tasks") or ())
    if "replicas" in spec:
        return _whole(spec["replicas"], 1)
    return 1 if item.kind in ("Deployment.apps", "ReplicaSet.apps", "StatefulSet.apps") else None


def _whole(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default
