"""One sample as a MetricReading says it: of what, how much, when, and over which time."""

from dataclasses import dataclass, field

from kube import Manifest, Object, parse_time
from kube.keys import kind_id
from resources import LARGEST, QuantityError, parse_milli

READING = "MetricReading.tidegate.dev"
POD = "Pod"
SOURCE_LABEL = "tidegate.dev/source"
"""On a MetricReading of which there is one for each who measures: who says it. What they say adds up."""
CONTAINER_LABEL = "container"
"""Label of a sample that is of one container of a pod."""
WINDOW_MS = 30_000
"""Over which time a sample was taken that does not say it: the interval of Kubernetes' metrics-server is half of it."""

STAND_IN_LABEL = "tidegate.dev/stand-in"
"""On a MetricReading that nobody measured: it is made here for those who read the metrics APIs, and is no sample."""

_NEVER_NEGATIVE = frozenset(["cpu", "memory", "concurrency", "rps"])
"""Metrics of which a sample below zero is a fault of its source."""

Series = tuple[str, str, str, str]
"""Namespace, kind of the subject ("" for what is outside the cluster), its name, and the name of the metric."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A sample. ``value_milli`` counts thousandths, ``at`` and ``window_ms`` are milliseconds."""

    series: Series
    value_milli: int
    at: int
    window_ms: int = WINDOW_MS
    labels: Manifest = field(default_factory=dict)
    source: str = ""
    """Who says it, where several may."""


def series_of(item: Object) -> Series:
    """What the MetricReading ``item`` is of; the same as long as it is there."""
    subject, metric = item.spec.get("describedObject") or {}, item.spec.get("metric") or {}
    kind = kind_id(str(subject.get("apiVersion") or ""), str(subject.get("kind") or "")) if subject else ""
    return item.namespace, kind, str(subject.get("name") or ""), str(metric.get("name") or "")


def read(item: Object) -> Reading | None:
    """The sample that ``item`` holds; None where it holds none: it was withdrawn, or makes no sense.

    Nothing is as much as the largest amount that there is, and nobody uses, or asks for, less than nothing.
    """
    spec = item.spec
    if spec.get("value") is None:
        return None
    try:
        value, at = parse_milli(spec["value"]), parse_time(str(spec.get("timestamp")))
        window = int(spec.get("windowSeconds", WINDOW_MS // 1000)) * 1000
        labels = {str(name): str(text) for name, text in ((spec.get("metric") or {}).get("labels") or {}).items()}
    except (QuantityError, ValueError, TypeError, AttributeError, OverflowError):
        return None
    series = series_of(item)
    if abs(value) >= LARGEST or (value < 0 and series[3] in _NEVER_NEGATIVE):
        return None
    return Reading(series, value, at, window, labels, item.labels.get(SOURCE_LABEL, ""))


def stamp(item: Object) -> int | None:
    """When ``item`` was said, with a value or without one; None where it says no time."""
    try:
        return parse_time(str(item.spec.get("timestamp")))
    except ValueError:
        return None
