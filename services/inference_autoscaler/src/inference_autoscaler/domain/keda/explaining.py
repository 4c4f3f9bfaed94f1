"""What the triggers of a ScaledObject say now, and what becomes of its target, in lines for people."""

from collections.abc import Iterator

from inference_autoscaler.domain.keda.course import Course
from inference_autoscaler.domain.keda.scaled_object import Scaled, Trigger
from inference_autoscaler.domain.keda.sources import Sources
from inference_autoscaler.domain.keda.triggers import RESOURCES, TriggerError, target_milli
from kube import Key, rfc3339


def explained(key: Key, spec: Scaled, course: Course, sources: Sources, replicas: int, now: int) -> Iterator[str]:
    """``replicas`` are wanted of its target now."""
    yield f"{spec.target.name}: {replicas} replicas, from {spec.asleep} to {spec.maximum}"
    for trigger in spec.triggers:
        yield _told(key, spec, trigger, course, sources, now)
    if spec.paused is not None:
        yield "it is paused: nothing changes before the annotation goes"
    elif not course.is_active and replicas > spec.asleep and (spec.idle is not None or spec.minimum == 0):
        since = course.last_active
        when = (
            "as soon as the initial cooldown is over" if since is None else f"after {rfc3339(since + spec.cooldown_ms)}"
        )
        yield f"no trigger is active: down to {spec.asleep} {when}, if none gets active before"
    yield f"between 1 and {spec.maximum} HorizontalPodAutoscaler {spec.autoscaler} decides"


def _told(key: Key, spec: Scaled, trigger: Trigger, course: Course, sources: Sources, now: int) -> str:
    if trigger.type in RESOURCES:
        return f"trigger {trigger.metric}: by what its pods use"
    try:
        found = sources.measure(key, trigger, now)
    except TriggerError as error:
        failures = course.failures.get(trigger.metric, 0)
        fallback = spec.fallback
        way = (
            "the size stays"
            if fallback is None
            else f"{fallback.replicas} replicas after {fallback.threshold} failures"
        )
        return f"{error}; failed {failures} times in a row: {way}"
    each = target_milli(trigger) / 1000
    return f"trigger {trigger.metric}: {found.value_milli / 1000:g}, {each:g} a replica, {'active' if found.active else 'not active'}"
