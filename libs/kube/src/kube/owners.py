"""The reference by which one object controls another: that one goes when its controller goes."""

from kube.keys import Manifest
from kube.kinds import api_version_of
from kube.objects import Object


def owner_reference(owner: Object) -> Manifest:
    """The reference of the controller ``owner``."""
    return {
        "apiVersion": api_version_of(owner.kind),
        "kind": owner.kind.partition(".")[0],
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
