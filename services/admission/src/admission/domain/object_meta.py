"""What holds for the metadata of every object: its name, its namespace, its labels and annotations."""

from collections.abc import Callable, Iterable, Mapping

from admission.domain import names
from admission.domain.errors import FieldError
from admission.domain.shapes import TEXT, TEXT_MAP, TEXTS, TRUTH, ListOf, MapOf, fields
from admission.domain.world import Review
from kube import Key, Object, is_namespaced
from kube.devices import GIVEN

NameRule = Callable[[str, str], Iterable[FieldError]]

QUOTA_MARKS = frozenset(
    f"tidegate.dev/{name}" for name in ("admission", "reservation", "quota-since", "revoked", "quota-of", "workload-of")
)
"""Annotations by which it is known what holds quota."""
MARKS = QUOTA_MARKS | GIVEN
"""What only the system gives: who copies an object, or writes them by hand, gets no quota and no device by that."""
ANNOTATIONS = MapOf(TEXT, without=MARKS)
METADATA = fields(
    name=TEXT,
    generateName=TEXT,
    namespace=TEXT,
    uid=TEXT,
    labels=TEXT_MAP,
    annotations=ANNOTATIONS,
    finalizers=TEXTS,
    creationTimestamp=TEXT,
    deletionTimestamp=TEXT,
    ownerReferences=ListOf(
        fields(apiVersion=TEXT, kind=TEXT, name=TEXT, uid=TEXT, controller=TRUTH, blockOwnerDeletion=TRUTH)
    ),
)
TEMPLATE_METADATA = fields(name=TEXT, namespace=TEXT, labels=TEXT_MAP, annotations=ANNOTATIONS)

ANNOTATIONS_BYTES_MAX = 256 * 1024
GENERATED_SUFFIX_LENGTH = 5


def default_namespace(review: Review) -> None:
    """An object without a namespace is in ``default``; one of a kind that has none carries none."""
    if is_namespaced(review.key.kind):
        review.metadata["namespace"] = review.key.namespace
    else:
        review.metadata.pop("namespace", None)


def check_metadata(review: Review, name_rule: NameRule) -> Iterable[FieldError]:
    """Name (by the kind's own ``name_rule``), namespace, labels and annotations."""
    yield from _check_name(review.metadata, name_rule)
    yield from _check_namespace(review)
    yield from names.labels("metadata.labels", review.labels)
    annotations: Mapping[str, str] = review.metadata.get("annotations") or {}
    for key in annotations:
        yield from names.qualified_name("metadata.annotations", key.lower())
    size = sum(len(key) + len(value) for key, value in annotations.items())
    if size > ANNOTATIONS_BYTES_MAX:
        yield FieldError("metadata.annotations", size, f"must be at most {ANNOTATIONS_BYTES_MAX} bytes in all")


def _check_name(metadata: Mapping[str, str], name_rule: NameRule) -> Iterable[FieldError]:
    name, prefix = metadata.get("name"), metadata.get("generateName")
    if name:
        yield from name_rule("metadata.name", name)
    elif prefix:
        yield from name_rule("metadata.generateName", prefix + "x" * GENERATED_SUFFIX_LENGTH)
    else:
        yield FieldError("metadata.name", None, "is required; give the object a name or a generateName")


def _check_namespace(review: Review) -> Iterable[FieldError]:
    namespace = review.key.namespace
    if not namespace:
        return
    yield from names.dns_label("metadata.namespace", namespace)
    holder = review.world.get(Key("Namespace", "", namespace))
    if review.creating and holder is not None and _terminating(holder):
        yield FieldError(
            "metadata.namespace", namespace, "is being deleted and takes nothing new; wait until it is gone"
        )


def _terminating(namespace: Object) -> bool:
    return namespace.deleting or namespace.status.get("phase") == "Terminating"
