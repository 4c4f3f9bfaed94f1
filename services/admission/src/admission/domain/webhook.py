"""Reviews as an API server asks for them: the same rules as for our own API, answered with a patch or with every fault.

Source: ``AdmissionReview`` of admission.k8s.io/v1. The API server has checked the object against its schema before; what it and
others added (managed fields, versions) is theirs and is never patched. Nothing here has an effect besides its answer, so a dry
run is answered like any other request.
"""

import base64
from collections.abc import Callable, Iterable, Sequence

import orjson

from admission.domain.admit import admit, admit_delete
from admission.domain.errors import Rejected
from admission.domain.pod_review import check_shaped_pod
from admission.domain.shapes import copied
from admission.domain.world import Review, World
from kube import Manifest, Object, from_manifest, key_of

FORBIDDEN = 422
LONGEST_WARNING = 256
"""Longer warnings are cut by the API server."""
MOST_WARNINGS = 16
OURS_IN_METADATA = ("labels", "annotations", "finalizers")
"""The parts of metadata that defaults may fill in."""

Shaping = Callable[[Review], None]


def answer(review: Manifest, world: World, *, patch: bool) -> Manifest:
    """The answer to an AdmissionReview; ``patch`` says whether defaults are filled in (a mutating webhook) or only checked."""
    request = review["request"]

    def judge() -> Manifest:
        if request["operation"] == "DELETE":
            admit_delete(from_manifest(request["oldObject"]), world)
            return {}
        admitted = admit(_named(request), _old(request), world)
        warnings = [text[:LONGEST_WARNING] for text in admitted.warnings[:MOST_WARNINGS]]
        return {"warnings": warnings, **(_patch(request["object"], admitted.manifest) if patch else {})}

    return _answered(review, judge)


def answer_pod(review: Manifest, world: World, shape: Sequence[Shaping]) -> Manifest:
    """The answer to an AdmissionReview of a pod: what ``shape`` makes of it, or without any, whether it may be as it is."""
    request = review["request"]

    def judge() -> Manifest:
        manifest = copied(_named(request))
        # A pod has no uid yet; that of the question tells it from others that are like it.
        manifest["metadata"]["uid"] = request["uid"]
        pod = Review(key_of(manifest), manifest, _old(request), world)
        for change in shape:
            change(pod)
        if shape:
            return _patch(request["object"], manifest)
        if errors := list(check_shaped_pod(pod)):
            raise Rejected(str(pod.key), errors)
        return {}

    return _answered(review, judge)


def _answered(review: Manifest, judge: Callable[[], Manifest]) -> Manifest:
    response: Manifest = {"uid": review["request"]["uid"], "allowed": True}
    try:
        response |= judge()
    except Rejected as rejected:
        response["allowed"] = False
        response["status"] = {"code": FORBIDDEN, "reason": "Invalid", "message": str(rejected)}
    return {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response}


def _old(request: Manifest) -> Object | None:
    return from_manifest(request["oldObject"]) if request.get("oldObject") else None


def _named(request: Manifest) -> Manifest:
    """The object under review, with the namespace that the request goes to; one whose name is to be made has none yet."""
    manifest: Manifest = request["object"]
    metadata = {**(manifest.get("metadata") or {})}
    if request.get("namespace"):
        metadata["namespace"] = request["namespace"]
    return {**manifest, "metadata": metadata}


def _patch(before: Manifest, after: Manifest) -> Manifest:
    """The part of an answer that makes ``after`` of ``before``; nothing where they are the same."""
    operations = list(_operations(before, after))
    if not operations:
        return {}
    return {"patchType": "JSONPatch", "patch": base64.b64encode(orjson.dumps(operations)).decode()}


def _operations(before: Manifest, after: Manifest) -> Iterable[Manifest]:
    """Part by part. The status and what is not ours of the metadata stay as they are."""
    for name, part in after.items():
        if name not in ("apiVersion", "kind", "metadata", "status") and before.get(name) != part:
            yield {"op": "add", "path": f"/{name}", "value": part}
    old, new = before.get("metadata") or {}, after.get("metadata") or {}
    for name in OURS_IN_METADATA:
        if name in new and old.get(name) != new[name] and (old.get(name) or new[name]):
            yield {"op": "add", "path": f"/metadata/{name}", "value": new[name]}
