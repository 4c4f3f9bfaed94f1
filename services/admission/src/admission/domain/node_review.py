"""Nodes as an API server is told of them by their kubelets: what they have, amplified where somebody said so."""

import base64

import orjson

from kube import Manifest, merge
from kube.amplification import amplified


def answer_node(review: Manifest) -> Manifest:
    """The answer to an AdmissionReview of a node's status. What differs from before is what the kubelet has just said."""
    request = review["request"]
    item, old = request["object"], request.get("oldObject") or {}
    allocatable, before = ((one.get("status") or {}).get("allocatable") or {} for one in (item, old))
    reported = {name: amount for name, amount in allocatable.items() if before.get(name) != amount}
    annotations = (item.get("metadata") or {}).get("annotations") or {}
    told, amounts = amplified(annotations, allocatable, reported)
    operations = []
    if told:
        operations.append({"op": "add", "path": "/metadata/annotations", "value": merge(annotations, told)})
    if amounts:
        operations.append({"op": "add", "path": "/status/allocatable", "value": {**allocatable, **amounts}})
    response: Manifest = {"uid": request["uid"], "allowed": True}
    if operations:
        patch = base64.b64encode(orjson.dumps(operations)).decode()
        response |= {"patchType": "JSONPatch", "patch": patch}
    return {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response}
