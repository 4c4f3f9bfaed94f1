"""What an ElasticQuota says in annotations: its share of what is left over, and the namespaces whose pods are in it."""

from collections.abc import Iterable
from typing import Any

from admission.domain.elastic_quota import KIND, PREFIX
from admission.domain.errors import FieldError
from admission.domain.quantities import check_amounts, sound_amounts
from admission.domain.shapes import entry
from admission.domain.world import Review
from kube import Object
from kube.json_text import read_json
from resources.amounts import format_amount

WEIGHT, NAMESPACES, STRICT = (
    PREFIX + word for word in ("shared-weight", "namespaces", "max-strict-check-resource-keys")
)


def check_quota_annotations(review: Review) -> Iterable[FieldError]:
    """Weights are not negative, no namespace belongs to two quotas, and a max that is to be kept strictly is above what is used."""
    annotations = review.metadata.get("annotations") or {}
    weights = _parsed(annotations.get(WEIGHT))
    where = f'metadata.annotations["{WEIGHT}"]'
    if isinstance(weights, dict):
        yield from check_amounts(where, weights)
    elif weights is not None:
        yield FieldError(where, annotations[WEIGHT], 'must be a JSON map of resources such as {"cpu": 2}')
    yield from _check_namespaces(review, annotations.get(NAMESPACES))
    yield from _check_strict(review, annotations.get(STRICT))


def _check_strict(review: Review, text: str | None) -> Iterable[FieldError]:
    """The max of these resources is at least what is used of them, where that is counted."""
    given = _parsed(text)
    where = f'metadata.annotations["{STRICT}"]'
    if given is not None and not isinstance(given, list):
        yield FieldError(where, text, 'must be a JSON list of resources such as ["cpu"]')
        return
    used, most = (
        sound_amounts(one) for one in (review.old.status.get("used") if review.old else {}, review.spec.get("max"))
    )
    for name in map(str, given or []):
        if name in used and used[name] > most.get(name, -1):
            told = format_amount(name, most[name]) if name in most else None
            rule = f"must be at least the {format_amount(name, used[name])} that is used; free some first"
            yield FieldError(entry("spec.max", name), told, rule)


def _check_namespaces(review: Review, text: str | None) -> Iterable[FieldError]:
    given = _parsed(text)
    where = f'metadata.annotations["{NAMESPACES}"]'
    if given is not None and not isinstance(given, list):
        yield FieldError(where, text, 'must be a JSON list of names such as ["lab"]')
        return
    for name in map(str, given or []):
        for other in _others_of(review, name):
            rule = f"namespace {name} belongs to quota {other.name}; take it out there first"
            yield FieldError(where, name, rule)


def _others_of(review: Review, namespace: str) -> list[Object]:
    quotas = [item for key, item in review.world.of_kind(KIND).items() if key.name != review.key.name]
    found = [item for item in quotas if namespace in (_parsed(item.annotations.get(NAMESPACES)) or [])]
    return sorted(found, key=lambda item: item.key)


def _parsed(text: str | None) -> Any:
    """The JSON in ``text``; the text itself where it is none."""
    try:
        return read_json(text) if text else None
    except ValueError:
        return text
