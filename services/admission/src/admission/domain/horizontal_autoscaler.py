"""HorizontalPodAutoscalers, as autoscaling/v2 checks them."""

from collections.abc import Iterable
from copy import deepcopy

from admission.domain.errors import FieldError
from admission.domain.quantities import check_amount
from admission.domain.selectors import SELECTOR, check_selector
from admission.domain.shapes import AMOUNT, TEXT, WHOLE, ListOf, fields, one_of, within
from admission.domain.world import Review
from kube import Manifest
from resources import QuantityError, parse_nano

_TARGET = fields(type=TEXT, averageUtilization=WHOLE, averageValue=AMOUNT, value=AMOUNT)
_METRIC = fields(name=TEXT, selector=SELECTOR)
_DESCRIBED = fields(apiVersion=TEXT, kind=TEXT, name=TEXT)
_DIRECTION = fields(
    stabilizationWindowSeconds=WHOLE,
    selectPolicy=TEXT,
    tolerance=AMOUNT,
    policies=ListOf(fields(type=TEXT, value=WHOLE, periodSeconds=WHOLE)),
)
BEHAVIOR = fields(scaleUp=_DIRECTION, scaleDown=_DIRECTION)
AUTOSCALER_SPEC = fields(
    scaleTargetRef=_DESCRIBED,
    minReplicas=WHOLE,
    maxReplicas=WHOLE,
    behavior=BEHAVIOR,
    metrics=ListOf(
        fields(
            type=TEXT,
            resource=fields(name=TEXT, target=_TARGET),
            containerResource=fields(name=TEXT, container=TEXT, target=_TARGET),
            pods=fields(metric=_METRIC, target=_TARGET),
            object=fields(metric=_METRIC, describedObject=_DESCRIBED, target=_TARGET),
            external=fields(metric=_METRIC, target=_TARGET),
        )
    ),
)
LONGEST_WINDOW_SECONDS = 3_600
LONGEST_PERIOD_SECONDS = 1_800
_SOURCES = {
    "Resource": ("resource", ("Utilization", "AverageValue")),
    "ContainerResource": ("containerResource", ("Utilization", "AverageValue")),
    "Pods": ("pods", ("AverageValue",)),
    "Object": ("object", ("Value", "AverageValue")),
    "External": ("external", ("Value", "AverageValue")),
}
DEFAULT_METRIC: Manifest = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
_OF_TARGET = {"Utilization": "averageUtilization", "AverageValue": "averageValue", "Value": "value"}


def default_autoscaler(review: Review) -> None:
    """One replica at the least, and Kubernetes' metric where none is given: four fifths of the cpu that is requested."""
    review.spec.setdefault("minReplicas", 1)
    if not review.spec.get("metrics"):
        review.spec["metrics"] = [deepcopy(DEFAULT_METRIC)]


def check_autoscaler(review: Review) -> Iterable[FieldError]:
    """It has a target, bounds that can be met, and metrics and rates that mean something."""
    spec = review.spec
    reference = spec.get("scaleTargetRef") or {}
    for name in ("kind", "name"):
        if not reference.get(name):
            yield FieldError(f"spec.scaleTargetRef.{name}", None, "is required")
    least, most = spec["minReplicas"], spec.get("maxReplicas")
    yield from within("spec.minReplicas", least, 0)
    yield from _check_most(most, least)
    for index, metric in enumerate(spec["metrics"]):
        yield from _check_metric(f"spec.metrics[{index}]", metric)
    if least == 0 and not any(metric.get("type") in ("Object", "External") for metric in spec["metrics"]):
        yield FieldError(
            "spec.minReplicas", 0, "needs an Object or External metric: without pods nothing else is measured"
        )
    yield from check_behavior("spec.behavior", spec.get("behavior"))


def check_behavior(path: str, behavior: Manifest | None) -> Iterable[FieldError]:
    """Windows of at most an hour, policies of at most half an hour that allow something."""
    for direction in ("scaleUp", "scaleDown"):
        rules: Manifest = (behavior or {}).get(direction) or {}
        where = f"{path}.{direction}"
        window = rules.get("stabilizationWindowSeconds")
        yield from within(f"{where}.stabilizationWindowSeconds", window, 0, LONGEST_WINDOW_SECONDS)
        yield from one_of(f"{where}.selectPolicy", rules.get("selectPolicy"), ("Max", "Min", "Disabled"))
        if rules.get("tolerance") is not None:
            yield from check_amount(f"{where}.tolerance", rules["tolerance"])
        if rules.get("policies") == []:
            yield FieldError(
                f"{where}.policies", None, "must have at least one policy; leave the field out for the defaults"
            )
        for index, policy in enumerate(rules.get("policies") or ()):
            yield from _check_policy(f"{where}.policies[{index}]", policy)


def _check_most(most: int | None, least: int) -> Iterable[FieldError]:
    if most is None:
        yield FieldError("spec.maxReplicas", None, "is required")
    elif most < 1 or most < least:
        yield FieldError("spec.maxReplicas", most, f"must be at least 1 and at least minReplicas, which is {least}")


def _check_policy(path: str, policy: Manifest) -> Iterable[FieldError]:
    if policy.get("type") not in ("Pods", "Percent"):
        yield FieldError(f"{path}.type", policy.get("type"), "must be Pods or Percent")
    for name, most in (("value", None), ("periodSeconds", LONGEST_PERIOD_SECONDS)):
        if policy.get(name) is None:
            yield FieldError(f"{path}.{name}", None, "is required")
        yield from within(f"{path}.{name}", policy.get(name), 1, most)


def _check_metric(path: str, metric: Manifest) -> Iterable[FieldError]:
    kind = metric.get("type")
    if kind not in _SOURCES:
        yield FieldError(f"{path}.type", kind, f"must be one of {', '.join(_SOURCES)}")
        return
    field, targets = _SOURCES[kind]
    source, where = metric.get(field), f"{path}.{field}"
    if not source:
        yield FieldError(where, None, f"is required for the type {kind}")
        return
    yield from _check_source(where, field, source)
    yield from _check_target(f"{where}.target", source.get("target") or {}, targets)


def _check_source(path: str, field: str, source: Manifest) -> Iterable[FieldError]:
    named = source if field in ("resource", "containerResource") else source.get("metric") or {}
    if not named.get("name"):
        yield FieldError(f"{path}.name" if named is source else f"{path}.metric.name", None, "is required")
    yield from check_selector(f"{path}.metric.selector", named.get("selector"))
    if field == "containerResource" and not source.get("container"):
        yield FieldError(f"{path}.container", None, "is required")
    described = source.get("describedObject") or {}
    for name in ("kind", "name") if field == "object" else ():
        if not described.get(name):
            yield FieldError(f"{path}.describedObject.{name}", None, "is required")


def _check_target(path: str, target: Manifest, allowed: Iterable[str]) -> Iterable[FieldError]:
    given = [name for name, field in _OF_TARGET.items() if target.get(field) is not None]
    if len(given) != 1:
        yield FieldError(path, None, f"must set one of {', '.join(_OF_TARGET[name] for name in allowed)}")
        return
    name, field = given[0], _OF_TARGET[given[0]]
    if name not in allowed:
        yield FieldError(f"{path}.{field}", target[field], f"must be {' or '.join(_OF_TARGET[one] for one in allowed)}")
    if target.get("type") not in (None, name):
        yield FieldError(f"{path}.type", target["type"], f"must be {name}, as {field} is given")
    if not _is_above_zero(target[field]):
        yield FieldError(f"{path}.{field}", target[field], "must be above 0")


def _is_above_zero(value: object) -> bool:
    try:
        return isinstance(value, int | float | str) and parse_nano(value) > 0
    except QuantityError:
        return False
