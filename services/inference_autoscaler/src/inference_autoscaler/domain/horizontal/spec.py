"""What a HorizontalPodAutoscaler asks for, read once from its object."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from inference_autoscaler.domain.horizontal.scaling_rules import DOWN, DOWN_WINDOW_MS, UP, Rules, rules
from inference_autoscaler.domain.metrics.reading import Series
from inference_autoscaler.domain.metrics.readings import only_label, topic_of
from kube import Key, Manifest, Object
from kube.keys import kind_id
from kube.kinds import api_version_of
from resources import parse_milli

AUTOSCALER = "HorizontalPodAutoscaler.autoscaling"
RESOURCE, CONTAINER_RESOURCE, PODS, OBJECT, EXTERNAL = "Resource", "ContainerResource", "Pods", "Object", "External"
TOTALS = (OBJECT, EXTERNAL)
"""Types of metrics that are one number for the whole target."""
UTILIZATION, AVERAGE_VALUE, VALUE = "Utilization", "AverageValue", "Value"
DEFAULT_METRIC = {
    "type": RESOURCE,
    "resource": {"name": "cpu", "target": {"type": UTILIZATION, "averageUtilization": 80}},
}
FIELDS = {
    RESOURCE: "resource",
    CONTAINER_RESOURCE: "containerResource",
    PODS: "pods",
    OBJECT: "object",
    EXTERNAL: "external",
}
"""Under which key the source of each type stands."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a metric should be: ``amount`` is in percent of the requests for Utilization, in thousandths otherwise."""

    kind: str
    amount: int


@dataclass(slots=True)
class Metric:
    """One metric. ``described`` is the object of an Object metric, ``namespace`` the one of its autoscaler.

    Never changed. What is asked of it in every look is worked out when it is made: ``series`` is what the samples of an
    External or Object metric are of, ``label`` the one that they must have where ``selector`` wants nothing else,
    ``named`` the metric itself as the status names it, ``title`` what Kubernetes calls it in its messages.
    """

    type: str
    name: str
    target: Target
    selector: Manifest | None = None
    described: Key | None = None
    container: str = ""
    namespace: str = ""
    series: Series = field(init=False)
    label: tuple[str, str] | None = field(init=False)
    named: Manifest = field(init=False)
    title: str = field(init=False)

    def __post_init__(self) -> None:
        of = self.described
        self.series = (self.namespace, *(("", "") if of is None else (of.kind, of.name)), self.name)
        self.label = only_label(self.selector)
        self.named, self.title = _named(self), _title(self)


@dataclass(frozen=True)
class Horizontal:
    """A HorizontalPodAutoscaler. Without a ``behavior`` of its own it has Kubernetes' older limits (``behaves`` is False)."""

    target: Key
    minimum: int
    maximum: int
    metrics: tuple[Metric, ...]
    behaves: bool
    up: Rules
    down: Rules

    @cached_property
    def horizon_ms(self) -> int:
        """How far its windows and periods reach back."""
        periods = [policy.period_ms for rules in (self.up, self.down) for policy in rules.policies]
        return max(DOWN_WINDOW_MS, self.up.window_ms, self.down.window_ms, *periods)

    def topics(self) -> Iterator[Hashable]:
        """What facts its answers depend on, but for those of its pods: its target, and samples (`Readings.fold`)."""
        yield self.target
        for metric in self.metrics:
            if metric.type in TOTALS:
                yield topic_of(metric.series, metric.selector)


def read(item: Object) -> Horizontal:
    """What the object says. Raises ValueError, TypeError or KeyError where admission should have refused it."""
    spec = item.spec
    ref, behavior, minimum = spec["scaleTargetRef"], spec.get("behavior"), spec.get("minReplicas")
    return Horizontal(
        Key(kind_id(str(ref.get("apiVersion") or ""), str(ref["kind"])), item.namespace, str(ref["name"])),
        1 if minimum is None else int(minimum),
        int(spec["maxReplicas"]),
        tuple(_metric(one, item.namespace) for one in spec.get("metrics") or (DEFAULT_METRIC,)),
        behavior is not None,
        rules((behavior or {}).get("scaleUp"), UP),
        rules((behavior or {}).get("scaleDown"), DOWN),
    )


def _metric(given: Manifest, namespace: str) -> Metric:
    kind = str(given["type"])
    source: Manifest = given[FIELDS[kind]]
    target = _target(source["target"])
    if kind in (RESOURCE, CONTAINER_RESOURCE):
        return Metric(
            kind, str(source["name"]), target, container=str(source.get("container") or ""), namespace=namespace
        )
    metric, described = source["metric"], source.get("describedObject")
    named = _described(described, namespace)
    return Metric(kind, str(metric["name"]), target, metric.get("selector"), named, namespace=namespace)


def _named(metric: Metric) -> Manifest:
    if metric.type == RESOURCE:
        return {"name": metric.name}
    if metric.type == CONTAINER_RESOURCE:
        return {"name": metric.name, "container": metric.container}
    named: Manifest = {"name": metric.name}
    if metric.selector is not None:
        named["selector"] = metric.selector
    if metric.described is None:
        return {"metric": named}
    kind = metric.described.kind
    described = {"apiVersion": api_version_of(kind), "kind": kind.partition(".")[0], "name": metric.described.name}
    return {"metric": named, "describedObject": described}


def _title(metric: Metric) -> str:
    share = " utilization (percentage of request)" if metric.target.kind == UTILIZATION else ""
    match metric.type:
        case "Resource":
            return f"{metric.name} resource{share}"
        case "ContainerResource":
            return f"{metric.name} container resource{share}"
        case "Pods":
            return f"pods metric {metric.name}"
        case "Object":
            return f"{_short(metric.described)} metric {metric.name}"
    return f"external metric {metric.name}({metric.selector})" if metric.selector else f"external metric {metric.name}"


def _described(given: Manifest | None, namespace: str) -> Key | None:
    if not given:
        return None
    return Key(kind_id(str(given.get("apiVersion") or ""), str(given["kind"])), namespace, str(given["name"]))


def _target(given: Manifest) -> Target:
    for kind, name in ((UTILIZATION, "averageUtilization"), (AVERAGE_VALUE, "averageValue"), (VALUE, "value")):
        if given.get(name) is not None:
            return Target(kind, int(given[name]) if kind == UTILIZATION else parse_milli(given[name]))
    raise ValueError(f"a target names one of averageUtilization, averageValue and value: {given}")


def _short(key: Key | None) -> str:
    return "" if key is None else key.kind.partition(".")[0]
