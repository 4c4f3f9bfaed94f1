"""Metadata of objects that a job controls: they go when the job goes."""

from kube import Manifest, Object, api_version_of


def owner_reference(owner: Object) -> Manifest:
    """The reference by which ``owner`` controls another object."""
    return {
        "apiVersion": api_version_of(owner.kind),
        "kind": owner.kind.partition(".")[0],
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def owned(owner: Object, name: str, **more: Manifest) -> Manifest:
    """The metadata of an object that ``owner`` controls, in its namespace; ``more`` are labels and annotations."""
    metadata: Manifest = {"name": name, "namespace": owner.namespace, "ownerReferences": [owner_reference(owner)]}
    return {**metadata, **{part: value for part, value in more.items() if value}}
