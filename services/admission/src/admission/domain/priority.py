"""Priority classes: what a name stands for, and the rules of the classes themselves."""

from collections.abc import Iterable

from admission.domain.errors import FieldError
from admission.domain.shapes import TEXT, TRUTH, WHOLE, fields, one_of
from admission.domain.world import Review, World
from kube import Key, Manifest, Object
from kube.priority_classes import PRIORITY_CLASS as PRIORITY_CLASS_KIND
from kube.priority_classes import SYSTEM_CLASSES, priority_fields

PRIORITY_CLASS = fields(value=WHOLE, globalDefault=TRUTH, description=TEXT, preemptionPolicy=TEXT)

HIGHEST_OF_USERS = 1_000_000_000
POLICIES = ("PreemptLowerPriority", "Never")


def find_class(world: World, name: str) -> Object | None:
    """The PriorityClass ``name``, or None."""
    return world.get(Key(PRIORITY_CLASS_KIND, "", name))


def is_known(world: World, name: str) -> bool:
    """Whether ``name`` is a class that there is; those of the system always are."""
    return name.startswith("system-") or find_class(world, name) is not None


def resolve_priority(world: World, spec: Manifest) -> None:
    """Fill ``spec.priority`` and ``spec.preemptionPolicy`` of a pod from its class, or from the global default."""
    spec |= priority_fields(spec, world)


def check_priority_class_name(path: str, world: World, name: str | None) -> Iterable[FieldError]:
    """The class that a pod names exists."""
    if name and not is_known(world, name):
        yield FieldError(path, name, f"no PriorityClass {name} exists; create it first or name one that exists")


def warn_missing_class(path: str, world: World, name: str | None) -> Iterable[str]:
    """A job or group may come before its priority class, but counts with priority 0 until then."""
    if name and not is_known(world, name):
        yield f"{path}: no PriorityClass {name} exists yet; priority 0 holds until there is one"


def default_priority_class(review: Review) -> None:
    review.manifest.setdefault("preemptionPolicy", "PreemptLowerPriority")


def check_priority_class(review: Review) -> Iterable[FieldError]:
    """A value below the system's, kept for ever; at most one class is the global default."""
    manifest, name = review.manifest, review.key.name
    value = manifest.get("value")
    if value is None:
        yield FieldError("value", None, "is required; give the class its priority")
    elif value > HIGHEST_OF_USERS and name not in SYSTEM_CLASSES:
        yield FieldError("value", value, f"must be at most {HIGHEST_OF_USERS}; higher ones are the system's")
    if name.startswith("system-") and name not in SYSTEM_CLASSES:
        yield FieldError("metadata.name", name, "names that start with system- are the system's; choose another")
    yield from one_of("preemptionPolicy", manifest.get("preemptionPolicy"), POLICIES)
    if review.old is not None and review.before("value") != value:
        yield FieldError("value", value, f"must stay {review.before('value')}; delete the class and create it anew")
    yield from _check_only_default(review)


def _check_only_default(review: Review) -> Iterable[FieldError]:
    others = [
        item.name
        for key, item in review.world.of_kind(PRIORITY_CLASS_KIND).items()
        if key != review.key and item.body.get("globalDefault")
    ]
    if review.manifest.get("globalDefault") and others:
        yield FieldError("globalDefault", True, f"{min(others)} is the global default already; there can be only one")
