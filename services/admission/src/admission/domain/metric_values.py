"""Samples as Kubernetes' autoscalers read them: `custom.metrics.k8s.io` and `external.metrics.k8s.io`, answered from MetricReadings.

A sample that is not known is not there: the answer is NotFound with the reason, never a zero.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kube import KINDS, Event, Key, Manifest, Object, Store, kind_id, parse_time, rfc3339
from kube.kinds import api_version_of
from kube.selectors import matches
from resources import format_quantity, parse_milli

READING = "MetricReading.tidegate.dev"
SOURCE = "tidegate.dev/source"
"""Label of a sample of which there is one for each who measures; what they say adds up."""
STAND_IN = "tidegate.dev/stand-in"
"""Label of what is told as long as there is no sample: the hours of a schedule, or what a silent source falls back on."""
_GONE_MS = 60_000
CUSTOM, EXTERNAL = "custom.metrics.k8s.io", "external.metrics.k8s.io"
VERSIONS = {CUSTOM: ("v1beta2", "v1beta1"), EXTERNAL: ("v1beta1",)}
"""Of each group those that are served, the preferred one first."""
ALL_PODS = "*"
_CONTAINER = "container"
_Series = tuple[str, str, str]
"""Namespace, kind of the subject ("" for what is outside the cluster), metric."""


class NotKnown(LookupError):
    """No sample is known; the text says why."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of custom metrics. ``kind`` has its group; with the name ``*`` the ``pods`` of these labels are meant.

    ``selector`` is for the labels of the samples.
    """

    version: str
    namespace: str
    kind: str
    name: str
    metric: str
    pods: Manifest
    selector: Manifest


class MetricIndex:
    """All MetricReadings by what they are of."""

    def __init__(self) -> None:
        self._series: dict[_Series, dict[Key, Object]] = {}

    def fold(self, events: Iterable[Event]) -> None:
        """Take in what changed; the same twice is the same."""
        for event in events:
            if event.key.kind != READING:
                continue
            for series in {_series(item) for item in (event.old, event.new) if item is not None}:
                listed = self._series.setdefault(series, {})
                listed.pop(event.key, None)
                if event.new is not None and _series(event.new) == series:
                    listed[event.key] = event.new
                if not listed:
                    del self._series[series]

    def begin(self, store: Store) -> None:
        """Take in all that there is."""
        self.fold(Event(None, item) for item in store.of_kind(READING).values())

    def of(self, namespace: str, kind: str, metric: str) -> list[Object]:
        """Those of a series, by name."""
        listed = self._series.get((namespace, kind, metric), {})
        return [listed[key] for key in sorted(listed)]

    def names(self) -> tuple[list[tuple[str, str]], list[str]]:
        """Kind and metric of all that is known of objects, and the metrics of what is outside."""
        inside = sorted({(kind, metric) for _, kind, metric in self._series if kind})
        return inside, sorted({metric for _, kind, metric in self._series if not kind})


def custom(index: MetricIndex, store: Store, asked: Asked) -> Manifest:
    """A MetricValueList. Raises NotKnown."""
    found = [item for item in index.of(asked.namespace, asked.kind, asked.metric) if _is_meant(item, store, asked)]
    values = list(_known(found, asked.selector))
    if not values:
        whom = "its pods" if asked.name == ALL_PODS else f"{asked.kind.partition('.')[0]} {asked.name}"
        raise NotKnown(f"no sample of {asked.metric} of {whom} is known{_why(found)}")
    items = [{**_value(item, asked), "value": value} for item, value in _together(values)]
    return {"kind": "MetricValueList", "apiVersion": f"{CUSTOM}/{asked.version}", "metadata": {}, "items": items}


def external(index: MetricIndex, namespace: str, metric: str, selector: Manifest) -> Manifest:
    """An ExternalMetricValueList. Raises NotKnown."""
    found = index.of(namespace, "", metric)
    values = list(_known(found, selector))
    values = [item for item in values if STAND_IN not in item.labels] or values
    if not values:
        raise NotKnown(f"no sample of {metric} is known{_why(found)}")
    items = [
        {
            "metricName": metric,
            "metricLabels": (item.spec.get("metric") or {}).get("labels") or {},
            **_taken(item, "window"),
        }
        for item in values
    ]
    return {"kind": "ExternalMetricValueList", "apiVersion": f"{EXTERNAL}/v1beta1", "metadata": {}, "items": items}


def groups() -> Manifest:
    """An APIGroupList."""
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [group(name) for name in VERSIONS]}


def group(name: str) -> Manifest:
    """An APIGroup."""
    versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in VERSIONS[name]]
    return {"kind": "APIGroup", "apiVersion": "v1", "name": name, "versions": versions, "preferredVersion": versions[0]}


def resources(index: MetricIndex, name: str, version: str) -> Manifest:
    """An APIResourceList: what is known, as resources that can be read."""
    inside, outside = index.names()
    if name == EXTERNAL:
        listed = [_resource(metric, "ExternalMetricValueList", True) for metric in outside]
    else:
        told = {(resource_of(kind), metric, KINDS[kind].namespaced) for kind, metric in inside if kind in KINDS}
        listed = [_resource(f"{resource}/{metric}", "MetricValueList", own) for resource, metric, own in sorted(told)]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{name}/{version}", "resources": listed}


def kind_of(resource: str) -> str:
    """The kind with its group that is called so: ``deployments.apps``. Raises NotKnown."""
    plural, _, own_group = resource.partition(".")
    for kind, info in KINDS.items():
        if (info.plural, info.group) == (plural, own_group):
            return kind
    raise NotKnown(f"no sample of {resource} is known: it is no kind that Tidegate serves")


def resource_of(kind: str) -> str:
    """The kind as it is called in a path."""
    info = KINDS[kind]
    return f"{info.plural}.{info.group}" if info.group else info.plural


def _resource(name: str, kind: str, namespaced: bool) -> Manifest:
    return {"name": name, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": ["get"]}


def _series(item: Object) -> _Series:
    subject, metric = item.spec.get("describedObject") or {}, item.spec.get("metric") or {}
    kind = kind_id(str(subject.get("apiVersion") or ""), str(subject.get("kind") or "")) if subject else ""
    return item.namespace, kind, str(metric.get("name") or "")


def _is_meant(item: Object, store: Store, asked: Asked) -> bool:
    name = str(item.spec["describedObject"].get("name") or "")
    if asked.name != ALL_PODS:
        return name == asked.name
    there = store.get(Key(asked.kind, asked.namespace, name))
    return there is not None and matches(asked.pods, there.labels)


def _known(found: Iterable[Object], selector: Manifest) -> Iterator[Object]:
    """Those with a value, of these labels. What is of one container is not of its pod, unless a container is asked for."""
    single = any(_CONTAINER in str(part) for part in selector.values())
    for item in found:
        labels = (item.spec.get("metric") or {}).get("labels") or {}
        if item.spec.get("value") is not None and matches(selector, labels) and (single or _CONTAINER not in labels):
            yield item


def _together(values: Iterable[Object]) -> Iterator[tuple[Object, str]]:
    """What several sources say of one thing is one value, their sum; who is behind the newest by `_GONE_MS` is gone."""
    listed: dict[object, list[Object]] = {}
    for item in values:
        labels = tuple(sorted(((item.spec.get("metric") or {}).get("labels") or {}).items()))
        of = (str(item.spec["describedObject"].get("name")), labels) if SOURCE in item.labels else item.key
        listed.setdefault(of, []).append(item)
    for items in listed.values():
        newest = max(items, key=_time)
        there = [item for item in items if _time(item) > _time(newest) - _GONE_MS]
        total = sum(parse_milli(item.spec["value"]) for item in there)
        yield newest, str(newest.spec["value"]) if len(there) == 1 else format_quantity(total, milli=True)


def _time(item: Object) -> int:
    return parse_time(str(item.spec["timestamp"]))


def _why(found: Iterable[Object]) -> str:
    told = next((text for item in found if (text := str(item.spec.get("message") or ""))), "")
    return f": {told}" if told else ""


def _value(item: Object, asked: Asked) -> Manifest:
    described = {
        "kind": asked.kind.partition(".")[0],
        "namespace": asked.namespace,
        "name": str(item.spec["describedObject"]["name"]),
        "apiVersion": api_version_of(asked.kind),
    }
    if not KINDS[asked.kind].namespaced:
        del described["namespace"]
    selector = asked.selector or None
    if asked.version == "v1beta1":
        named: Manifest = {"metricName": asked.metric, "selector": selector}
        return {"describedObject": described, **named, **_taken(item, "window")}
    metric: Manifest = {"name": asked.metric, "selector": selector}
    return {"describedObject": described, "metric": metric, **_taken(item, "windowSeconds")}


def _taken(item: Object, window: str) -> Manifest:
    """When, over which time, and how much."""
    spec = item.spec
    lasted = {window: int(spec["windowSeconds"])} if spec.get("windowSeconds") else {}
    return {"timestamp": rfc3339(parse_time(str(spec["timestamp"]))), **lasted, "value": str(spec["value"])}
