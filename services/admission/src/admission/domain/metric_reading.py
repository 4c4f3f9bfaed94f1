"""MetricReadings: samples that programs hand in, for autoscalers to go by."""

from collections.abc import Iterable

from admission.domain.errors import FieldError
from admission.domain.quantities import check_amount
from admission.domain.shapes import AMOUNT, TEXT, TEXT_MAP, WHOLE, closed, within
from admission.domain.world import Review
from kube import parse_time

READING_SPEC = closed(
    describedObject=closed(apiVersion=TEXT, kind=TEXT, name=TEXT),
    metric=closed(name=TEXT, labels=TEXT_MAP),
    value=AMOUNT,
    timestamp=TEXT,
    windowSeconds=WHOLE,
    message=TEXT,
)
"""Without ``describedObject`` the sample is of something outside the cluster; without ``value`` it says that none is known, and
``message`` why.
"""


def check_reading(review: Review) -> Iterable[FieldError]:
    """It says of which metric it is, and when it was taken."""
    spec = review.spec
    if not (spec.get("metric") or {}).get("name"):
        yield FieldError("spec.metric.name", None, "is required")
    described = spec.get("describedObject")
    for name in ("kind", "name") if described is not None else ():
        if not (described or {}).get(name):
            yield FieldError(f"spec.describedObject.{name}", None, "is required")
    if spec.get("value") is not None:
        yield from check_amount("spec.value", spec["value"])
    yield from within("spec.windowSeconds", spec.get("windowSeconds"), 1)
    try:
        parse_time(str(spec.get("timestamp")))
    except ValueError:
        yield FieldError("spec.timestamp", spec.get("timestamp"), "must be a time such as 2026-01-31T12:00:00Z")
