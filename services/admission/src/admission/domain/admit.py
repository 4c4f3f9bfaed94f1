"""What may enter, and in what form: one request after the other, against the objects that there are.

A manifest is read by the shape of its kind, filled in, and checked; it comes out complete, or with everything that is
wrong with it. The rules of each kind are in ``rules.RULES``.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from admission.domain.errors import FieldError, Rejected
from admission.domain.object_meta import MARKS, check_metadata, default_namespace
from admission.domain.resource_quota import check_quota_room
from admission.domain.rules import RULES, UNRULED, Rules
from admission.domain.runnable import warn_unrunnable
from admission.domain.shaped_templates import shape_templates
from admission.domain.shapes import Reading, copied
from admission.domain.stated_times import check_estimate, warn_times
from admission.domain.stated_wishes import check_wishes, warn_wishes
from admission.domain.unattended import unattended
from admission.domain.world import Review, World
from kube import KINDS, Key, Manifest, Object, UnknownKind, key_of

__all__ = ["Admitted", "World", "admit", "admit_delete", "read_key"]

_VERSION = re.compile(r"v[0-9]+((alpha|beta)[0-9]+)?")

# What the cluster says about an object, which a user's update neither changes nor drops.
KEPT_METADATA = ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
KEPT_IF_LEFT_OUT = ("ownerReferences", "finalizers")


@dataclass(frozen=True, slots=True)
class Admitted:
    """A manifest that may be stored as it is, and what its author should know."""

    manifest: Manifest
    warnings: tuple[str, ...] = ()


def admit(manifest: Manifest, old: Object | None, world: World) -> Admitted:
    """Let an object in, or a new version of ``old``; ``manifest`` stays untouched.

    Raises Rejected with every wrong field.
    """
    key = read_key(manifest)
    rules = RULES.get(key.kind, UNRULED)
    reading = Reading()
    review = Review(
        key, reading.read("", rules.shape, {**manifest, "metadata": manifest.get("metadata") or {}}), old, world
    )
    _refuse(key, reading.errors)
    _prepare(review, rules)
    shape_templates(review)
    for fill_in in rules.defaults:
        fill_in(review)
    of_all = (*check_metadata(review, rules.name), *check_estimate(review), *check_wishes(review))
    _refuse(key, [*of_all, *(error for check in rules.checks for error in check(review))])
    _refuse(key, list(check_quota_room(review)))
    warnings = [*_unknown(reading.unknown), *_idle(reading.idle), *_version(manifest, key), *unattended(key.kind)]
    for warn in (*rules.warnings, warn_times, warn_wishes, warn_unrunnable):
        warnings += warn(review)
    return Admitted(review.manifest, tuple(warnings))


def admit_delete(old: Object, world: World) -> None:
    """Let ``old`` be deleted; raises Rejected with every reason why it may not."""
    rules = RULES.get(old.kind, UNRULED)
    errors = [error for check in rules.deletes for error in check(old, world)]
    if errors:
        raise Rejected(f"the deletion of {old.key}", errors)


def read_key(manifest: Manifest) -> Key:
    """The key of the object that ``manifest`` describes, whatever else is wrong with it.

    Raises Rejected where that cannot be told: no kind that is served, or a name or namespace that is no text.
    """
    errors = list(_unnamed(manifest))
    if errors:
        raise Rejected("the object", errors)
    try:
        return key_of(manifest)
    except UnknownKind as error:
        raise Rejected("the object", [FieldError("kind", manifest.get("kind"), str(error))]) from None


def _unnamed(manifest: Manifest) -> Iterable[FieldError]:
    given = manifest.get("apiVersion")
    if given is not None and not (isinstance(given, str) and _VERSION.fullmatch(given.rpartition("/")[2])):
        yield FieldError("apiVersion", given, "must be a version such as v1 or batch.volcano.sh/v1alpha1")
    metadata = manifest.get("metadata") or {}
    if not isinstance(metadata, dict):
        yield FieldError("metadata", metadata, "must be a mapping of fields")
        return
    for name in ("namespace", "name"):
        if not isinstance(metadata.get(name), str | None):
            yield FieldError(f"metadata.{name}", metadata[name], "must be a text")


def _prepare(review: Review, rules: Rules) -> None:
    """Namespace and what only the cluster says: the status, and of an update the life of the object so far."""
    default_namespace(review)
    for name in ("resourceVersion", "uid", "managedFields", *KEPT_METADATA):
        review.metadata.pop(name, None)
    if not rules.keeps_status:
        review.manifest.pop("status", None)
    if review.old is not None:
        kept = [*KEPT_METADATA, *(name for name in KEPT_IF_LEFT_OUT if name not in review.metadata)]
        review.metadata.update(
            {name: copied(review.old.metadata[name]) for name in kept if name in review.old.metadata}
        )
        marks = {name: text for name, text in review.old.annotations.items() if name in MARKS}
        if marks:
            review.metadata["annotations"] = {**(review.metadata.get("annotations") or {}), **marks}


def _refuse(key: Key, errors: Iterable[FieldError]) -> None:
    told = {str(error): error for error in errors}
    if told:
        raise Rejected(str(key), told.values())


def _unknown(paths: Iterable[str]) -> list[str]:
    return [f"{path}: unknown field; it is kept and has no effect" for path in paths]


def _idle(paths: Iterable[str]) -> list[str]:
    return [f"{path}: it is kept, and nobody acts on it" for path in paths]


def _version(manifest: Manifest, key: Key) -> list[str]:
    given, served = manifest.get("apiVersion"), KINDS[key.kind].api_version
    return [] if given == served else [f"apiVersion: {given} is taken for {served}"]
