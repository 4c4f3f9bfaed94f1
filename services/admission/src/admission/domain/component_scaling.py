"""By what components of InferenceServices may be scaled: it depends on the mode, and on who scales."""

from collections.abc import Iterable

from admission.domain.errors import FieldError
from admission.domain.shapes import AMOUNT, TEXT, WHOLE, fields, one_of, within
from kube import Manifest
from resources import QuantityError, parse_milli

METRIC = fields(
    type=TEXT,
    resource=fields(name=TEXT, target=fields(type=TEXT, averageUtilization=WHOLE, averageValue=AMOUNT, value=AMOUNT)),
    external=fields(
        metric=fields(backend=TEXT, serverAddress=TEXT, query=TEXT, namespace=TEXT),
        target=fields(value=AMOUNT, averageValue=AMOUNT),
        authenticationRef=fields(authenticationRef=fields(name=TEXT)),
    ),
)
_RESOURCES = ("cpu", "memory")
_LEAST_MEMORY_BYTES = 1 << 20


def check_standard_scaling(path: str, component: Manifest, scaled_by: str) -> Iterable[FieldError]:
    """A HorizontalPodAutoscaler goes by what pods use, a ScaledObject also by what others measure."""
    metric, target = component.get("scaleMetric"), component.get("scaleTarget")
    listed: list[Manifest] = (component.get("autoScaling") or {}).get("metrics") or []
    if scaled_by == "hpa":
        yield from one_of(f"{path}.scaleMetric", metric, _RESOURCES)
        yield from within(f"{path}.scaleTarget", target, 1, 100)
    elif scaled_by == "keda" and metric:
        rule = "means nothing for the class keda; say it in autoScaling.metrics"
        yield FieldError(f"{path}.scaleMetric", metric, rule)
    allowed = ("Resource", "External") if scaled_by == "keda" else ("Resource",)
    for index, one in enumerate(listed if scaled_by in ("hpa", "keda") else ()):
        place = f"{path}.autoScaling.metrics[{index}]"
        yield from one_of(f"{place}.type", one.get("type") or "", allowed)
        if one.get("type") == "Resource":
            yield from _check_resource(place, one)
        elif one.get("type") == "External" and scaled_by == "keda":
            yield from _check_external(place, one)


def check_serverless_scaling(path: str, component: Manifest) -> Iterable[FieldError]:
    """Knative's autoscaler goes by the requests."""
    yield from one_of(f"{path}.scaleMetric", component.get("scaleMetric"), ("concurrency", "rps"))
    yield from within(f"{path}.scaleTarget", component.get("scaleTarget"), 1)
    if (component.get("autoScaling") or {}).get("metrics"):
        rule = "mean nothing where requests are what a service is scaled by; leave them out, or use RawDeployment"
        yield FieldError(f"{path}.autoScaling.metrics", None, rule)
    if component.get("deploymentStrategy"):
        yield FieldError(f"{path}.deploymentStrategy", None, "means nothing for revisions; leave it out")


def _check_resource(path: str, metric: Manifest) -> Iterable[FieldError]:
    resource: Manifest = metric.get("resource") or {}
    target: Manifest = resource.get("target") or {}
    if resource.get("name") not in _RESOURCES:
        yield FieldError(f"{path}.resource", resource.get("name"), f"must name one of {', '.join(_RESOURCES)}")
    kind = target.get("type")
    allowed = ("Utilization", "AverageValue") if resource.get("name") == "memory" else ("Utilization",)
    yield from one_of(f"{path}.resource.target.type", kind or "", allowed)
    if kind == "Utilization":
        if target.get("averageUtilization") is None:
            yield FieldError(f"{path}.resource.target.averageUtilization", None, "is required for Utilization")
        yield from within(f"{path}.resource.target.averageUtilization", target.get("averageUtilization"), 1, 100)
    elif kind == "AverageValue" and not _is_memory(target.get("averageValue")):
        yield FieldError(f"{path}.resource.target.averageValue", target.get("averageValue"), "must be at least 1Mi")


def _is_memory(value: object) -> bool:
    try:
        return parse_milli(str(value)) >= _LEAST_MEMORY_BYTES * 1000
    except QuantityError:
        return False


def _check_external(path: str, metric: Manifest) -> Iterable[FieldError]:
    external: Manifest = metric.get("external") or {}
    source, target = external.get("metric") or {}, external.get("target") or {}
    yield from one_of(f"{path}.external.metric.backend", source.get("backend"), ("prometheus",))
    if not source.get("query"):
        yield FieldError(f"{path}.external.metric.query", None, "is required")
    if target.get("value") is None:
        yield FieldError(f"{path}.external.target.value", None, "is required")
