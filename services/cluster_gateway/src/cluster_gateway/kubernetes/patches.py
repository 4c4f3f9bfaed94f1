"""Laying what was decided over an object that others write at the same time.

What the server can merge by itself (fields, and the conditions of Kubernetes' own kinds, which have a type as their key) is
sent as it is. A list is replaced as a whole, so it is merged here, over the object as it was seen, and sent with its version:
where somebody wrote meanwhile the server refuses (409), and the patch is laid over what is there now. A change of more than the
status is refused instead, when somebody else has changed more than the status: it was decided on something else.
"""

from dataclasses import dataclass
from typing import Any

from apiserver.api import MERGE_PATCH, STRATEGIC_PATCH, Answer, ApiRequest
from cluster_gateway.domain.mirror import Mirror
from cluster_gateway.kubernetes.discovery import Served
from cluster_gateway.kubernetes.requests import manager
from kube import Manifest, Mutation, Object, Verb, merge


@dataclass(frozen=True, slots=True)
class Present:
    """An object as it was seen last. ``version`` is the server's, 0 where it is not known."""

    uid: str
    version: int
    status: Manifest


def present(there: Object, mirror: Mirror) -> Present:
    """The object as the mirror has it."""
    return Present(there.uid, mirror.versions.get(there.key, 0), there.status)


def present_in(answer: Answer) -> Present:
    """The object as the server has it."""
    metadata = answer.body["metadata"]
    return Present(str(metadata["uid"]), int(metadata["resourceVersion"]), answer.body.get("status") or {})


def needs_version(mutation: Mutation, kind: Served) -> bool:
    """Whether the patch may be laid only over the very version that it was made for."""
    return mutation.verb is Verb.PATCH or not _merged_by_server(mutation.patch or {}, kind)


def patch_request(mutation: Mutation, there: Present, kind: Served, service: str) -> ApiRequest:
    """The patch over ``there``, refused by the server when the object is another, or has changed where that matters."""
    metadata: Manifest = {"uid": there.uid}
    if needs_version(mutation, kind):
        metadata["resourceVersion"] = str(there.version)
    path, patch = kind.path(mutation.key.namespace, mutation.key.name), mutation.patch or {}
    if mutation.verb is Verb.PATCH:
        place = "/scale" if is_scaling(mutation, kind) else ""
        body = {**patch, "metadata": {**(patch.get("metadata") or {}), **metadata}}
        return ApiRequest("PATCH", path + place, body, manager(service), MERGE_PATCH)
    path += "/status" if kind.has_status else ""
    if _merged_by_server(patch, kind):
        content = STRATEGIC_PATCH if kind.info.is_builtin else MERGE_PATCH
        return ApiRequest("PATCH", path, {"metadata": metadata, "status": patch}, manager(service), content)
    status = _with_whole_lists(there.status, patch)
    return ApiRequest("PATCH", path, {"metadata": metadata, "status": status}, manager(service), MERGE_PATCH)


def is_scaling(mutation: Mutation, kind: Served) -> bool:
    """Whether the patch is about nothing but how many replicas there are: the kind's own subresource is for that."""
    patch = mutation.patch or {}
    return (
        mutation.verb is Verb.PATCH
        and kind.has_scale
        and kind.info.is_builtin
        and patch.keys() == {"spec"}
        and (patch["spec"] or {}).keys() == {"replicas"}
    )


def _merged_by_server(patch: Manifest, kind: Served) -> bool:
    """Whether the server merges the patch of a status as it is meant."""
    rest = {name: part for name, part in patch.items() if name != "conditions"} if kind.info.is_builtin else patch
    return not _has_list(rest)


def _with_whole_lists(old: Manifest, patch: Manifest) -> Manifest:
    """The patch with each of its lists as it is to be when it is laid over ``old``."""
    laid: Manifest = {}
    for name, value in patch.items():
        before = old.get(name)
        if isinstance(value, dict):
            laid[name] = _with_whole_lists(before if isinstance(before, dict) else {}, value)
        else:
            laid[name] = merge(old, {name: value})[name] if isinstance(value, list) else value
    return laid


def _has_list(part: Any) -> bool:
    if isinstance(part, dict):
        return any(map(_has_list, part.values()))
    return isinstance(part, list)
