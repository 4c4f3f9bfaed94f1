"""What an ElasticQuota says in annotations: its share of what is left over, and the namespaces whose pods are in it."""

from collections.abc import Iterable
from typing import Any

from admission.domain.elastic_quota import KIND, PREFIX
from admission.domain.errors import FieldError
from admission.domain.quantities import check_amounts
from admission.domain.world import Review
from kube import Object
from kube.json_text import read_json

WEIGHT, NAMESPACES = PREFIX + "shared-weight", PREFIX + "namespaces"


def check_quota_annotations(review: Review) -> Iterable[FieldError]:
    """Weights are amounts that are not negative, and no namespace belongs to two quotas."""
    annotations = review.metadata.get("annotations") or {}
    weights = _parsed(annotations.get(WEIGHT))
    where = f'metadata.annotations["{WEIGHT}"]'
    if isinstance(weights, dict):
        yield from check_amounts(where, weights)
    elif weights is not None:
        yield FieldError(where, annotations[WEIGHT], 'must be a JSON map of resources such as {"cpu": 2}')
    yield from _check_namespaces(review, annotations.get(NAMESPACES))


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
