"""Reviews as an API server asks for them: the same rules as for our own API, answered with a patch or with every fault.

Source: ``AdmissionReview`` of admission.k8s.io/v1. The API server has checked the object against its schema before; what it and
others added (managed fields, versions) is theirs and is never patched.
"""

import base64
from collections.abc import Iterable

import orjson

from admission.domain.admit import admit, admit_delete
from admission.domain.errors import Rejected
from admission.domain.world import World
from kube import Manifest, Object, from_manifest

FORBIDDEN = 422
LONGEST_WARNING = 256
"""Longer warnings are cut by the API server."""
MOST_WARNINGS = 16
OURS_IN_METADATA = ("labels", "annotations", "finalizers")
"""The parts of metadata that defaults may fill in."""


def answer(review: Manifest, world: World, *, patch: bool) -> Manifest:
    """The answer to an AdmissionReview; ``patch`` says whether defaults are filled in (a mutating webhook) or only checked."""
    request = review["request"]
    response: Manifest = {"uid": request["uid"], "allowed": True}
    try:
        if request["operation"] == "DELETE":
            admit_delete(_object(request["oldObject"]), world)
        else:
            old = _object(request["oldObject"]) if request.get("oldObject") else None
            admitted = admit(_named(request), old, world)
            response["warnings"] = [text[:LONGEST_WARNING] for text in admitted.warnings[:MOST_WARNINGS]]
            operations = list(_patch(request["object"], admitted.manifest)) if patch else []
            if operations:
                response["patchType"] = "JSONPatch"
                response["patch"] = base64.b64encode(orjson.dumps(operations)).decode()
    except Rejected as rejected:
        response["allowed"] = False
        response["status"] = {"code": FORBIDDEN, "reason": "Invalid", "message": str(rejected)}
    return {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response}


def _object(manifest: Manifest) -> Object:
    return from_manifest(manifest)


def _named(request: Manifest) -> Manifest:
    """The object under review, with the namespace that the request goes to; one whose name is to be made has none yet."""
    manifest: Manifest = request["object"]
    metadata = {**(manifest.get("metadata") or {})}
    if request.get("namespace"):
        metadata["namespace"] = request["namespace"]
    return {**manifest, "metadata": metadata}


def _patch(before: Manifest, after: Manifest) -> Iterable[Manifest]:
    """What makes ``after`` of ``before``, part by part. The status and what is not ours of the metadata stay as they are."""
    for name, part in after.items():
        if name not in ("apiVersion", "kind", "metadata", "status") and before.get(name) != part:
            yield {"op": "add", "path": f"/{name}", "value": part}
    old, new = before.get("metadata") or {}, after.get("metadata") or {}
    for name in OURS_IN_METADATA:
        if new.get(name) and old.get(name) != new[name]:
            yield {"op": "add", "path": f"/metadata/{name}", "value": new[name]}
