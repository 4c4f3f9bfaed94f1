"""Versions of a pod template, told apart by a hash in the labels of what is made of them."""

import json

from cluster_gateway.domain.controllers.work import letters
from kube import Manifest

POD_TEMPLATE_HASH = "pod-template-hash"
REVISION_HASH = "controller-revision-hash"


def template_hash(template: Manifest) -> str:
    """Ten letters that the content of ``template`` determines, whatever the order of its keys."""
    return letters(json.dumps(template, sort_keys=True, separators=(",", ":"), default=str), 10)
