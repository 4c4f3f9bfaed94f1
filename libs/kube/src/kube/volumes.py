"""Persistent volumes and the claims on them: the rules of Kubernetes that more than one service goes by."""

from collections.abc import Mapping
from typing import Any

from kube.keys import Key, Manifest
from kube.objects import Object
from resources import QuantityError, parse_quantity

CLAIM, VOLUME, STORAGE_CLASS = "PersistentVolumeClaim", "PersistentVolume", "StorageClass.storage.k8s.io"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""On a claim: the node that was chosen for its first pod."""

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
EXCLUSIVE = "ReadWriteOncePod"
HOST_NAME = "kubernetes.io/hostname"


def claims_of(spec: Mapping[str, Any], namespace: str) -> tuple[Key, ...]:
    """The claims that a pod spec names, sorted."""
    found = set[Key]()
    for volume in spec.get("volumes") or ():
        name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if name:
            found.add(Key(CLAIM, namespace, str(name)))
    return tuple(sorted(found))


def class_of(item: Object) -> str | None:
    """The class that a claim or volume names; None when it says nothing, "" for explicitly none."""
    name = item.spec.get("storageClassName")
    return None if name is None else str(name)


def waits_for_consumer(storage: Object | None) -> bool:
    """Whether claims of a class are bound with their first pod."""
    return storage is not None and storage.body.get("volumeBindingMode") == "WaitForFirstConsumer"


def provisions(storage: Object) -> bool:
    """Whether volumes are made for the claims of a class."""
    return storage.body.get("provisioner") != NO_PROVISIONER


def size_of(claim: Object) -> int:
    """The bytes that a claim asks for; 0 where that cannot be read."""
    return _bytes(((claim.spec.get("resources") or {}).get("requests") or {}).get("storage"))


def capacity_of(volume: Object) -> int:
    """The bytes that a volume holds; 0 where that cannot be read."""
    return _bytes((volume.spec.get("capacity") or {}).get("storage"))


def is_free(volume: Object, claim: Object) -> bool:
    """Whether a volume is nobody's, or is kept for ``claim``."""
    if volume.deleting or volume.status.get("phase") in ("Released", "Failed"):
        return False
    owner = volume.spec.get("claimRef")
    return not owner or is_owner(owner, claim)


def is_owner(owner: Mapping[str, Any], claim: Object) -> bool:
    """Whether a volume's claimRef means ``claim``; one without a uid means whatever claim has the name."""
    named = (owner.get("namespace"), owner.get("name")) == (claim.namespace, claim.name)
    return named and owner.get("uid") in (None, "", claim.uid)


def volume_suits(volume: Object, claim: Object) -> bool:
    """Whether a volume is of the class, the modes and the size that a claim asks for."""
    if (class_of(volume) or "") != (class_of(claim) or ""):
        return False
    if (volume.spec.get("volumeMode") or "Filesystem") != (claim.spec.get("volumeMode") or "Filesystem"):
        return False
    has = set(volume.spec.get("accessModes") or ())
    return has.issuperset(claim.spec.get("accessModes") or ()) and capacity_of(volume) >= size_of(claim)


def topology_term(storage: Object | None, node: str, labels: Mapping[str, str]) -> Manifest:
    """Where a volume that is made for ``node`` can be had, as a node selector term.

    That is in the node's domain of the keys that the class's allowedTopologies name, else on that node alone.
    """
    keys = dict.fromkeys(
        str(one.get("key"))
        for item in (storage.body.get("allowedTopologies") if storage is not None else None) or ()
        for one in item.get("matchLabelExpressions") or ()
    )
    known = [key for key in keys or (HOST_NAME,) if key in labels]
    if not known:
        return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return {"matchExpressions": [{"key": key, "operator": "In", "values": [labels[key]]} for key in known]}


def _bytes(quantity: Any) -> int:
    try:
        return parse_quantity(quantity or 0)
    except QuantityError:
        return 0
