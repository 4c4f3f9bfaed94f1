"""What each type of trigger measures, when it is active, and what one replica is to bear of it."""

from dataclasses import dataclass

from inference_autoscaler.domain.keda.scaled_object import NAME_LABEL, Trigger
from inference_autoscaler.domain.metrics.readings import Readings
from kube import Manifest
from kube.cron import Schedule
from resources import parse_milli

CRON = "cron"
RESOURCES = ("cpu", "memory")
"""Triggers that the autoscaler measures by itself; they are never why a target sleeps or wakes."""
ONE_MILLI = 1000


@dataclass(frozen=True, slots=True)
class Source:
    """Under which keys of its metadata a type has the target and the activation, and the default of the target."""

    target: str
    default: str
    activation: str


SOURCES = {
    "prometheus": Source("threshold", "", "activationThreshold"),
    "nats-jetstream": Source("lagThreshold", "10", "activationLagThreshold"),
    "metrics-api": Source("targetValue", "", "activationTargetValue"),
}
"""Types whose value is handed in as a sample."""
KNOWN = (CRON, *RESOURCES, *SOURCES)


class TriggerError(Exception):
    """The source of a trigger says nothing: why, in words."""


@dataclass(frozen=True, slots=True)
class Measured:
    """In thousandths."""

    value_milli: int
    active: bool


def target_milli(trigger: Trigger) -> int:
    """How much of its metric one replica is to bear, in thousandths. Raises ValueError where it says none."""
    if trigger.type == CRON:
        return ONE_MILLI
    source = SOURCES[trigger.type]
    return parse_milli(trigger.metadata.get(source.target) or source.default)


def measure(trigger: Trigger, namespace: str, name: str, readings: Readings, now: int) -> Measured:
    """What the trigger of the ScaledObject ``name`` measures at ``now``. Raises TriggerError."""
    if trigger.type == CRON:
        return _scheduled(trigger.metadata, now)
    if trigger.type not in SOURCES:
        raise TriggerError(f"trigger {trigger.metric}: there is no source of type {trigger.type} here")
    selector: Manifest = {"matchLabels": {NAME_LABEL: name}}
    series = (namespace, "", "", trigger.metric)
    found = readings.of(series, selector)
    if not found:
        raise TriggerError(f"trigger {trigger.metric}: {readings.why_silent(series)}")
    value = sum(one.value_milli for one in found)
    activation = parse_milli(trigger.metadata.get(SOURCES[trigger.type].activation) or "0")
    return Measured(value, value > activation)


def _scheduled(metadata: Manifest, now: int) -> Measured:
    """Inside its hours a schedule asks for its replicas, and outside of them for none."""
    zone = str(metadata.get("timezone") or "UTC")
    next_start = _next(str(metadata["start"]), zone, now)
    next_end = _next(str(metadata["end"]), zone, now)
    inside = next_end is not None and (next_start is None or next_end < next_start)
    return Measured(parse_milli(metadata["desiredReplicas"]) if inside else 0, inside)


def _next(expression: str, zone: str, now: int) -> int | None:
    try:
        return Schedule(expression, zone).next_after(0, now)
    except ValueError as error:
        raise TriggerError(str(error)) from None
