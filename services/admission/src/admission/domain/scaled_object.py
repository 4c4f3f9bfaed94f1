"""ScaledObjects, as KEDA's webhook checks them."""

from collections.abc import Iterable

from admission.domain.errors import FieldError
from admission.domain.horizontal_autoscaler import BEHAVIOR, check_behavior
from admission.domain.quantities import check_amount
from admission.domain.shapes import AMOUNT, TEXT, TEXT_MAP, TRUTH, WHOLE, Idle, ListOf, fields, one_of, within
from admission.domain.world import Review
from kube import Manifest, Object
from kube.cron import Schedule
from kube.keys import kind_id

SCALED_OBJECT = "ScaledObject.keda.sh"
AUTOSCALER = "HorizontalPodAutoscaler.autoscaling"
_TARGET = fields(apiVersion=TEXT, kind=TEXT, name=TEXT)
SCALED_SPEC = fields(
    scaleTargetRef=_TARGET,
    pollingInterval=WHOLE,
    cooldownPeriod=WHOLE,
    initialCooldownPeriod=WHOLE,
    minReplicaCount=WHOLE,
    maxReplicaCount=WHOLE,
    idleReplicaCount=WHOLE,
    fallback=fields(failureThreshold=WHOLE, replicas=WHOLE, behavior=TEXT),
    advanced=fields(
        restoreToOriginalReplicaCount=Idle(TRUTH),
        horizontalPodAutoscalerConfig=fields(name=TEXT, behavior=BEHAVIOR),
        scalingModifiers=Idle(fields(formula=TEXT, target=AMOUNT, activationTarget=AMOUNT, metricType=TEXT)),
    ),
    triggers=ListOf(
        fields(
            type=TEXT,
            name=TEXT,
            metricType=TEXT,
            metadata=TEXT_MAP,
            useCachedMetrics=TRUTH,
            authenticationRef=fields(name=TEXT, kind=TEXT),
        )
    ),
)
_REFERENCES = ListOf(fields(parameter=TEXT, name=TEXT, key=TEXT))
AUTHENTICATION_SPEC = fields(secretTargetRef=_REFERENCES)
RESOURCES = ("cpu", "memory")
SERVED = ("cron", "metrics-api", "nats-jetstream", "prometheus", *RESOURCES)
_NEEDED = {
    "cron": ("timezone", "start", "end", "desiredReplicas"),
    "prometheus": ("query", "threshold"),
    "nats-jetstream": ("stream", "consumer"),
    "metrics-api": ("url", "valueLocation", "targetValue"),
    "cpu": ("value",),
    "memory": ("value",),
}
_AMOUNTS = (
    "threshold",
    "activationThreshold",
    "lagThreshold",
    "activationLagThreshold",
    "targetValue",
    "activationTargetValue",
    "desiredReplicas",
    "value",
)
_MOST, _LEAST = 100, 0


def check_scaled_object(review: Review) -> Iterable[FieldError]:
    """Its bounds can be met, its triggers can be measured and can wake it, and nobody else scales its target."""
    spec = review.spec
    if not (spec.get("scaleTargetRef") or {}).get("name"):
        yield FieldError("spec.scaleTargetRef.name", None, "is required")
    yield from _check_bounds(spec)
    yield from _check_triggers(spec)
    yield from _check_fallback(spec)
    advanced = (spec.get("advanced") or {}).get("horizontalPodAutoscalerConfig") or {}
    yield from check_behavior("spec.advanced.horizontalPodAutoscalerConfig.behavior", advanced.get("behavior"))
    yield from _check_owner(review)


def warn_scaled_object(review: Review) -> Iterable[str]:
    """Which triggers nothing here measures."""
    for index, trigger in enumerate(review.spec.get("triggers") or ()):
        if trigger.get("type") not in SERVED:
            yield f"spec.triggers[{index}].type: nothing here measures {trigger.get('type')}; it never scales anything"


def check_authentication(review: Review) -> Iterable[FieldError]:
    """Each credential is of a part of a Secret."""
    for index, reference in enumerate(review.spec.get("secretTargetRef") or ()):
        for name in ("parameter", "name", "key"):
            if not reference.get(name):
                yield FieldError(f"spec.secretTargetRef[{index}].{name}", None, "is required")


def warn_authentication(review: Review) -> Iterable[str]:
    """Which credentials are not read."""
    for name in sorted(review.spec.keys() - {"secretTargetRef"}):
        yield f"spec.{name}: is not read; triggers that need it measure nothing"


def _check_bounds(spec: Manifest) -> Iterable[FieldError]:
    least, most, idle = (
        spec.get("minReplicaCount", _LEAST),
        spec.get("maxReplicaCount", _MOST),
        spec.get("idleReplicaCount"),
    )
    yield from within("spec.minReplicaCount", least, 0)
    yield from within("spec.maxReplicaCount", most, 1)
    if least > most:
        yield FieldError("spec.minReplicaCount", least, f"must be at most maxReplicaCount, which is {most}")
    if idle is not None and not 0 <= idle < least:
        yield FieldError(
            "spec.idleReplicaCount", idle, f"must be at least 0 and below minReplicaCount, which is {least}"
        )
    yield from within("spec.pollingInterval", spec.get("pollingInterval"), 1)
    for name in ("cooldownPeriod", "initialCooldownPeriod"):
        yield from within(f"spec.{name}", spec.get(name), 0)


def _check_triggers(spec: Manifest) -> Iterable[FieldError]:
    triggers: list[Manifest] = spec.get("triggers") or []
    if not triggers:
        yield FieldError("spec.triggers", None, "must have at least one")
        return
    names = [trigger["name"] for trigger in triggers if trigger.get("name")]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield FieldError("spec.triggers", name, "names a trigger more than once")
    for index, trigger in enumerate(triggers):
        yield from _check_trigger(f"spec.triggers[{index}]", trigger)
    sleeps = spec.get("minReplicaCount", _LEAST) == 0
    if sleeps and all(trigger.get("type") in RESOURCES for trigger in triggers):
        rule = "cannot be 0 with triggers of type cpu and memory alone: without pods nothing is measured that could wake it"
        yield FieldError("spec.minReplicaCount", 0, rule)


def _check_trigger(path: str, trigger: Manifest) -> Iterable[FieldError]:
    kind, metadata = trigger.get("type"), trigger.get("metadata") or {}
    if not kind:
        yield FieldError(f"{path}.type", None, "is required")
        return
    allowed = ("Utilization", "AverageValue") if kind in RESOURCES else ("AverageValue", "Value")
    yield from one_of(f"{path}.metricType", trigger.get("metricType"), allowed)
    for name in _NEEDED.get(kind, ()):
        if not metadata.get(name):
            yield FieldError(f"{path}.metadata.{name}", None, f"is required for the type {kind}")
    for name in _AMOUNTS if kind in SERVED else ():
        if metadata.get(name):
            yield from check_amount(f"{path}.metadata.{name}", metadata[name])
    if kind == "metrics-api":
        yield from one_of(f"{path}.metadata.format", metadata.get("format"), ("json",))
    for name in ("start", "end") if kind == "cron" else ():
        if metadata.get(name):
            yield from _check_schedule(f"{path}.metadata.{name}", metadata[name], metadata.get("timezone") or "")


def _check_schedule(path: str, expression: str, zone: str) -> Iterable[FieldError]:
    try:
        Schedule(expression, zone).check()
    except ValueError as error:
        yield FieldError(path, expression, str(error))


def _check_fallback(spec: Manifest) -> Iterable[FieldError]:
    fallback = spec.get("fallback")
    if not fallback:
        return
    for name in ("failureThreshold", "replicas"):
        if fallback.get(name) is None:
            yield FieldError(f"spec.fallback.{name}", None, "is required")
        yield from within(f"spec.fallback.{name}", fallback.get(name), 0)
    behaviors = ("static", "currentReplicas", "currentReplicasIfHigher", "currentReplicasIfLower")
    yield from one_of("spec.fallback.behavior", fallback.get("behavior"), behaviors)
    if all(trigger.get("type") in RESOURCES for trigger in spec.get("triggers") or ()):
        yield FieldError(
            "spec.fallback", None, "has no effect with triggers of type cpu and memory alone; leave it out"
        )


def _check_owner(review: Review) -> Iterable[FieldError]:
    """One target has one owner."""
    target = _target(review.spec.get("scaleTargetRef") or {})
    for key, other in sorted(review.world.of_kind(SCALED_OBJECT).items()):
        if key != review.key and key.namespace == review.key.namespace and _of(other) == target:
            yield FieldError("spec.scaleTargetRef", target[1], f"is scaled by the ScaledObject {key.name} already")
    for key, other in sorted(review.world.of_kind(AUTOSCALER).items()):
        ours = (other.controller or {}).get("kind") == "ScaledObject"
        if key.namespace == review.key.namespace and not ours and _of(other) == target:
            yield FieldError(
                "spec.scaleTargetRef", target[1], f"is scaled by the HorizontalPodAutoscaler {key.name} already"
            )


def _of(other: Object) -> tuple[str, str]:
    return _target(other.spec.get("scaleTargetRef") or {})


def _target(reference: Manifest) -> tuple[str, str]:
    kind = kind_id(str(reference.get("apiVersion") or "apps/v1"), str(reference.get("kind") or "Deployment"))
    return kind, str(reference.get("name") or "")
