"""What an autoscaler with a goal asks for, read once from its object: bounds, pause, and which of its samples are the load."""

from collections.abc import Iterator
from dataclasses import dataclass

from inference_autoscaler.domain.horizontal import spec as horizontal
from inference_autoscaler.domain.keda import scaled_object as keda
from inference_autoscaler.domain.keda.triggers import SOURCES, target_milli
from inference_autoscaler.domain.metrics.reading import Series
from inference_autoscaler.domain.serving.inference_service import CLASS, SERVICE
from inference_autoscaler.domain.target.aim import CAME, IN_FLIGHT
from inference_autoscaler.domain.target.goal import GOAL, SLOTS
from kube import Event, Key, Manifest, Object, Store

_ONE_MILLI = 1000


@dataclass(frozen=True, slots=True)
class Measure:
    """Of what the samples are; ``selector`` tells several of one name apart. ``per_replica`` is what one is said to bear, 0 for nothing."""

    series: Series
    selector: Manifest | None = None
    per_replica: int = 0


@dataclass(frozen=True, slots=True)
class Steering:
    """``maximum`` is the most, ``paused`` a number to be kept at (-1: the present one). ``own`` are its measures of the load, by name."""

    target: Key
    minimum: int
    maximum: int
    own: dict[str, Measure]
    slots: int = 0
    paused: int | None = None


@dataclass(frozen=True, slots=True)
class Resolved:
    """Where the load is measured, in words too, and how many requests a replica answers at once."""

    came: Measure
    in_flight: Measure
    slots: int
    words: str


def has_goal(item: Object | None) -> bool:
    """Whether ``item`` states one."""
    return item is not None and GOAL in item.annotations


def without_goal(event: Event) -> Event:
    """The event as it is for those who leave objects with a goal alone: these are not there."""
    old, new = (None if has_goal(item) else item for item in (event.old, event.new))
    return Event(old, new) if old is not None or new is not None else Event(event.object, None)


def read(item: Object) -> Steering:
    """What the object says. Raises ValueError, TypeError or KeyError where it makes no sense."""
    text = item.annotations.get(SLOTS, "")
    if text and not (text.isdecimal() and int(text) > 0):
        raise ValueError(f"{SLOTS}: {text!r} is no number of requests")
    if item.kind == horizontal.AUTOSCALER:
        spec = horizontal.read(item)
        own = dict(_of_metrics(spec))
        return Steering(spec.target, spec.minimum, spec.maximum, own, int(text or 0))
    scaled = keda.read(item)
    least = scaled.minimum if scaled.idle is None else scaled.idle
    own = dict(_of_triggers(item, scaled))
    return Steering(scaled.target, least, scaled.maximum, own, int(text or 0), scaled.paused)


def _of_metrics(spec: horizontal.Horizontal) -> Iterator[tuple[str, Measure]]:
    for metric in spec.metrics:
        if metric.type in horizontal.TOTALS and metric.name in (CAME, IN_FLIGHT):
            bears = metric.target.amount // _ONE_MILLI if metric.target.kind == horizontal.AVERAGE_VALUE else 0
            yield metric.name, Measure(metric.series, metric.selector, bears)


def _of_triggers(item: Object, scaled: keda.Scaled) -> Iterator[tuple[str, Measure]]:
    for trigger, given in zip(scaled.triggers, item.spec["triggers"], strict=True):
        if trigger.type in SOURCES and given.get("name") in (CAME, IN_FLIGHT):
            labels: Manifest = {"matchLabels": {keda.NAME_LABEL: item.name}}
            bears = target_milli(trigger) // _ONE_MILLI if trigger.kind == horizontal.AVERAGE_VALUE else 0
            yield given["name"], Measure((item.namespace, "", "", trigger.metric), labels, bears)


def resolve(steering: Steering, target: Object, store: Store) -> Resolved:
    """By its own metrics, or those of the service that the target is a part of, or of the target. Raises ValueError with the way out."""
    key = service_of(target)
    service = None if key is None else store.get(key)
    if service is not None and service.annotations.get(CLASS, "hpa") != "external":
        raise ValueError(
            f"InferenceService {service.name} sizes {target.name} itself: put {GOAL} on it, or give it {CLASS}: external"
        )
    if len(steering.own) == 1:
        (there,) = steering.own
        other = IN_FLIGHT if there == CAME else CAME
        raise ValueError(
            f"it measures {there} and not {other}: a goal needs both, as metrics, or triggers, of these names"
        )
    if steering.own:
        came, in_flight = steering.own[CAME], steering.own[IN_FLIGHT]
        words = "its own metrics"
    else:
        subject = service or target
        came, in_flight = (Measure((*_place(subject), name)) for name in (CAME, IN_FLIGHT))
        words = f"{subject.kind.partition('.')[0]} {subject.name}"
    slots = steering.slots or in_flight.per_replica or _concurrency(service)
    if not slots:
        raise ValueError(
            f"it does not say how many requests a replica answers at once: say so by the annotation {SLOTS}"
        )
    return Resolved(came, in_flight, slots, words)


def service_of(target: Object) -> Key | None:
    """The InferenceService that ``target`` is a part of."""
    owner = target.controller or {}
    return Key(SERVICE, target.namespace, str(owner.get("name"))) if owner.get("kind") == "InferenceService" else None


def _place(item: Object) -> tuple[str, str, str]:
    return item.namespace, item.kind, item.name


def _concurrency(service: Object | None) -> int:
    if service is None:
        return 0
    return int((service.spec.get("predictor") or {}).get("containerConcurrency") or 0)
