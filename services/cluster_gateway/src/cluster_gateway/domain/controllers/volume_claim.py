"""PersistentVolumeClaims: bound to a volume that is there, or to one that is made for them; kept while pods use them.

A claim whose class waits for its first consumer is left alone until the scheduler names a volume or a node on it. Where no
StorageClass describes a claim's class the cluster's own folders serve it, so that a manifest made for another cluster runs;
but not where somebody gave volumes of that class, or the claim says that it wants none made (class "").
"""

from collections.abc import Iterator

from cluster_gateway.domain.assignments import has_agent
from cluster_gateway.domain.controllers.work import Work
from kube import Key, Manifest, Object
from kube.pods import is_finished
from kube.selectors import SelectorError, matches
from kube.volumes import (
    CLAIM,
    DEFAULT_CLASS,
    SELECTED_NODE,
    STORAGE_CLASS,
    VOLUME,
    capacity_of,
    claims_of,
    class_of,
    is_free,
    is_owner,
    provisions,
    topology_term,
    volume_suits,
    waits_for_consumer,
)

PROTECTION = "kubernetes.io/pvc-protection"
MADE_BY = "pv.kubernetes.io/provisioned-by"
FOLDERS = "tidegate.dev/folder"
"""Who makes the volumes of a class that nobody described: folders in the data folder."""


def reconcile_claim(claim: Object, taken: set[str], work: Work) -> None:
    """Bring a claim further. ``taken`` are the volumes given away in this turn."""
    finalizers = list(claim.metadata.get("finalizers") or ())
    if claim.deleting:
        if PROTECTION in finalizers and not any(_users(claim, work)):
            finalizers.remove(PROTECTION)
            work.patch(claim, {"metadata": {"finalizers": finalizers or None}})
        return
    if PROTECTION not in finalizers:
        work.patch(claim, {"metadata": {"finalizers": [*finalizers, PROTECTION]}})
    name = claim.spec.get("volumeName")
    if name:
        _follow(claim, str(name), taken, work)
    elif claim.status.get("phase") == "Bound":
        work.status(claim, {"phase": "Lost"})
    else:
        _look_for_volume(claim, taken, work)


def reconcile_volume(volume: Object, work: Work) -> None:
    """A volume without its claim is free again, kept, or deleted, as its reclaim policy says."""
    owner = volume.spec.get("claimRef") or {}
    claim = work.store.get(Key(CLAIM, str(owner.get("namespace") or ""), str(owner.get("name") or "")))
    if not owner:
        work.status(volume, {"phase": "Available"})
    elif claim is not None and is_owner(owner, claim):
        bound = claim.spec.get("volumeName") == volume.name
        work.status(volume, {"phase": "Bound" if bound else "Available"})
    elif not owner.get("uid"):
        work.status(volume, {"phase": "Available"})
    elif volume.spec.get("persistentVolumeReclaimPolicy") == "Delete":
        work.delete(volume)
    else:
        work.status(volume, {"phase": "Released"})


def _users(claim: Object, work: Work) -> Iterator[Object]:
    """The pods on nodes that still use the claim."""
    for pod in work.store.in_namespace("Pod", claim.namespace):
        if pod.spec.get("nodeName") and not is_finished(pod) and claim.key in claims_of(pod.spec, pod.namespace):
            yield pod


def _follow(claim: Object, name: str, taken: set[str], work: Work) -> None:
    """The claim names its volume: they belong together if the volume is there and nobody else's."""
    volume = work.store.get(Key(VOLUME, "", name))
    if volume is None:
        work.status(claim, {"phase": "Lost" if claim.status.get("phase") in ("Bound", "Lost") else "Pending"})
    elif not is_free(volume, claim) or name in taken:
        work.status(claim, {"phase": "Pending"})
    else:
        taken.add(name)
        _bind(claim, volume, work)
        _settle(claim, volume, work)


def _settle(claim: Object, volume: Object, work: Work) -> None:
    """A folder that was made for the claim is on the machine of the first agent that ran a pod with it, and stays there."""
    if MADE_BY not in volume.annotations or volume.spec.get("nodeAffinity"):
        return
    names = sorted({str(pod.spec["nodeName"]) for pod in _users(claim, work)})
    nodes = [node for name in names if (node := work.store.get(Key("Node", "", name))) is not None and has_agent(node)]
    if nodes:
        terms = [topology_term(None, nodes[0].name, nodes[0].labels)]
        work.patch(volume, {"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}})


def _look_for_volume(claim: Object, taken: set[str], work: Work) -> None:
    storage, name = _class(claim, work)
    if storage is not None and class_of(claim) is None:
        work.patch(claim, {"spec": {"storageClassName": storage.name}})
        return
    node = claim.annotations.get(SELECTED_NODE, "")
    if waits_for_consumer(storage) and not node:
        work.status(claim, {"phase": "Pending"})
        return
    volumes = sorted(work.store.of_kind(VOLUME).values(), key=lambda item: (capacity_of(item), item.name))
    found = next((item for item in volumes if item.name not in taken and _suits(item, claim)), None)
    if found is not None and not node:
        taken.add(found.name)
        work.patch(claim, {"spec": {"volumeName": found.name}})
        _bind(claim, found, work)
    elif _is_made(storage, name, volumes):
        made = _manifest(claim, storage, node, work)
        work.create(made)
        work.patch(claim, {"spec": {"volumeName": made["metadata"]["name"]}})
        work.status(claim, _bound_status(claim, made["spec"]))
    else:
        work.status(claim, {"phase": "Pending"})


def _class(claim: Object, work: Work) -> tuple[Object | None, str | None]:
    """The class of a claim: its own, or the default one where it names none."""
    name = class_of(claim)
    if name is not None:
        return work.store.get(Key(STORAGE_CLASS, "", name)), name
    classes = sorted(work.store.of_kind(STORAGE_CLASS).values(), key=lambda item: item.name)
    return next((item for item in classes if item.annotations.get(DEFAULT_CLASS) == "true"), None), None


def _is_made(storage: Object | None, name: str | None, volumes: list[Object]) -> bool:
    if storage is not None:
        return provisions(storage)
    if name is None:
        return True
    return bool(name) and not any(class_of(item) == name and MADE_BY not in item.annotations for item in volumes)


def _suits(volume: Object, claim: Object) -> bool:
    selector = claim.spec.get("selector")
    try:
        selected = not selector or matches(selector, volume.labels)
    except SelectorError:
        return False
    return selected and is_free(volume, claim) and volume_suits(volume, claim)


def _bind(claim: Object, volume: Object, work: Work) -> None:
    owner = {"kind": CLAIM, "namespace": claim.namespace, "name": claim.name, "uid": claim.uid}
    if (volume.spec.get("claimRef") or {}).get("uid") != claim.uid:
        work.patch(volume, {"spec": {"claimRef": owner}})
    work.status(volume, {"phase": "Bound"})
    work.status(claim, _bound_status(claim, volume.spec))


def _bound_status(claim: Object, volume_spec: Manifest) -> Manifest:
    modes = volume_spec.get("accessModes") or claim.spec.get("accessModes") or []
    return {"phase": "Bound", "accessModes": modes, "capacity": volume_spec.get("capacity") or {}}


def _manifest(claim: Object, storage: Object | None, node: str, work: Work) -> Manifest:
    """The volume that is made for a claim."""
    size = ((claim.spec.get("resources") or {}).get("requests") or {}).get("storage") or "0"
    maker = str(storage.body.get("provisioner") or FOLDERS) if storage is not None else FOLDERS
    policy = str(storage.body.get("reclaimPolicy") or "Delete") if storage is not None else "Delete"
    spec: Manifest = {
        "capacity": {"storage": size},
        "accessModes": claim.spec.get("accessModes") or [],
        "persistentVolumeReclaimPolicy": policy,
        "claimRef": {"kind": CLAIM, "namespace": claim.namespace, "name": claim.name, "uid": claim.uid},
        "csi": {"driver": maker, "volumeHandle": f"{claim.namespace}/{claim.name}"},
    }
    if class_of(claim) is not None:
        spec["storageClassName"] = class_of(claim)
    terms = _reach(storage, node, work)
    if terms:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    metadata = {"name": f"pvc-{claim.uid}", "annotations": {MADE_BY: maker}}
    return {"apiVersion": "v1", "kind": VOLUME, "metadata": metadata, "spec": spec, "status": {"phase": "Bound"}}


def _reach(storage: Object | None, node: str, work: Work) -> list[Manifest]:
    """Where a volume that is made can be had; empty for everywhere."""
    if node:
        there = work.store.get(Key("Node", "", node))
        return [topology_term(storage, node, there.labels if there is not None else {})]
    allowed = (storage.body.get("allowedTopologies") if storage is not None else None) or ()
    return [
        {"matchExpressions": [{**one, "operator": "In"} for one in item.get("matchLabelExpressions") or ()]}
        for item in allowed
    ]


def unbound(claim: Object) -> bool:
    """Whether a new volume or class may be what a claim waits for."""
    return claim.status.get("phase") != "Bound"
