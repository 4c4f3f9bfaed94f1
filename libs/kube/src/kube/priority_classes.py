"""PriorityClasses: the number, and the policy, that the name of one stands for in a pod."""

from collections.abc import Mapping
from typing import Protocol

from kube.keys import Key, Manifest
from kube.objects import Object

PRIORITY_CLASS = "PriorityClass.scheduling.k8s.io"
SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


class Classes(Protocol):
    """Where classes are looked up; ``kube.Store`` is one."""

    def get(self, key: Key, /) -> Object | None:
        """The object of ``key``, or None."""

    def of_kind(self, kind: str, /) -> Mapping[Key, Object]:
        """All objects of the kind with group, by key."""


def priority_fields(spec: Manifest, classes: Classes) -> Manifest:
    """What the class that a pod names, or else the global default, says of it; fields that the pod's ``spec`` has are left out."""
    name = str(spec.get("priorityClassName") or "")
    found = classes.get(Key(PRIORITY_CLASS, "", name)) if name else _global_default(classes)
    if found is None:
        told: Manifest = {"priority": SYSTEM_CLASSES[name]} if name in SYSTEM_CLASSES else {}
    else:
        told = {"priorityClassName": found.name, "priority": int(found.body.get("value") or 0)}
        if policy := found.body.get("preemptionPolicy"):
            told["preemptionPolicy"] = policy
    return {field: value for field, value in told.items() if field not in spec}


def _global_default(classes: Classes) -> Object | None:
    defaults = [item for item in classes.of_kind(PRIORITY_CLASS).values() if item.body.get("globalDefault")]
    # Of several that call themselves the default Kubernetes takes the lowest.
    return min(defaults, key=lambda item: (int(item.body.get("value") or 0), item.name), default=None)
