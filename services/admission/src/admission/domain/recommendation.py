"""Recommendations: of which workload, or of which pods, somebody wants to know what their containers should ask for."""

from collections.abc import Iterable

from admission.domain.errors import FieldError
from admission.domain.selectors import SELECTOR, check_selector
from admission.domain.shapes import TEXT, closed, one_of
from admission.domain.world import Review

RECOMMENDATION_SPEC = closed(
    target=closed(type=TEXT, workload=closed(apiVersion=TEXT, kind=TEXT, name=TEXT), podSelector=SELECTOR)
)
TYPES = ("workload", "podSelector")


def check_recommendation(review: Review) -> Iterable[FieldError]:
    """There is a target, of the type that it says."""
    target = review.spec.get("target") or {}
    given = [name for name in TYPES if target.get(name)]
    if len(given) != 1:
        yield FieldError("spec.target", None, "must name one workload, or select pods by podSelector")
        return
    yield from one_of("spec.target.type", target.get("type") or None, TYPES)
    if target.get("type") and target["type"] != given[0]:
        yield FieldError("spec.target.type", target["type"], f"must be {given[0]}, as that is given")
    workload = target.get("workload") or {}
    for name in ("apiVersion", "kind", "name") if given == ["workload"] else ():
        if not workload.get(name):
            yield FieldError(f"spec.target.workload.{name}", None, "is required")
    yield from check_selector("spec.target.podSelector", target.get("podSelector"))
