"""Metadata of objects that a job controls: they go when the job goes."""

from kube import Manifest, Object
from kube.owners import owner_reference


def owned(owner: Object, name: str, **more: Manifest) -> Manifest:
    """The metadata of an object that ``owner`` controls, in its namespace; ``more`` are labels and annotations."""
    metadata: Manifest = {"name": name, "namespace": owner.namespace, "ownerReferences": [owner_reference(owner)]}
    return {**metadata, **{part: value for part, value in more.items() if value}}
