"""What a patch makes of an object: a merge patch (RFC 7396), or a JSON patch (RFC 6902)."""

import json
from typing import Any

from admission.domain.errors import FieldError, Rejected
from kube import Manifest, Object, merge
from kube.json_patch import BadPatch, patched

Edit = Manifest | list[Any]
"""A merge patch, or the operations of a JSON patch."""

MOVED_ON = "is not the version that the object has now, which is {}; read it again"


class BadEdit(ValueError):
    """What was sent as a patch is none; the text says why."""


def read_edit(content: bytes) -> Edit:
    """The patch in ``content``, which is JSON. Raises BadEdit."""
    try:
        edit: Edit = json.loads(content)
    except ValueError as error:
        raise BadEdit(f"the patch is no JSON: {error}") from None
    if not isinstance(edit, dict | list):
        raise BadEdit("a patch is an object (a merge patch) or a list of operations (a JSON patch)")
    return edit


def patched_manifest(old: Object, edit: Edit) -> Manifest:
    """The object after ``edit``; what it is stays what it is. Raises Rejected.

    A patch that sets ``metadata.resourceVersion`` is meant for that version, and for no other.
    """
    before = old.manifest()
    try:
        after = merge(before, edit) if isinstance(edit, dict) else patched(before, edit)
    except BadPatch as error:
        raise Rejected(str(old.key), (FieldError("", None, str(error)),)) from None
    metadata = after.get("metadata") or {}
    version = metadata.get("resourceVersion") or str(old.revision)
    if str(version) != str(old.revision):
        rule = MOVED_ON.format(old.revision)
        raise Rejected(str(old.key), (FieldError("metadata.resourceVersion", version, rule),))
    identity = {name: before["metadata"][name] for name in ("name", "namespace") if name in before["metadata"]}
    what = {field: before[field] for field in ("apiVersion", "kind")}
    return {**after, **what, "metadata": {**metadata, **identity}}
