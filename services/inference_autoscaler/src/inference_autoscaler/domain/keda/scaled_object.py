"""What a ScaledObject asks for, read once from its object with KEDA's defaults."""

from dataclasses import dataclass, field

from kube import Key, Manifest, Object
from kube.keys import kind_id

SCALED_OBJECT = "ScaledObject.keda.sh"
PAUSED, PAUSED_REPLICAS = "autoscaling.keda.sh/paused", "autoscaling.keda.sh/paused-replicas"
NAME_LABEL = "scaledobject.keda.sh/name"
"""The label by which the metrics of a ScaledObject's autoscaler are found."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """``metric`` is the name of its metric; ``kind`` that of its target (AverageValue, Value, Utilization)."""

    type: str
    metric: str
    kind: str
    metadata: Manifest


@dataclass(frozen=True, slots=True)
class Fallback:
    """What runs when a source failed more than ``threshold`` times in a row."""

    threshold: int
    replicas: int
    behavior: str = "static"


@dataclass(frozen=True, slots=True)
class Scaled:
    """A ScaledObject. Times are in milliseconds. ``paused`` is a number to be kept at, -1 for the present one, None for no pause."""

    target: Key
    minimum: int
    maximum: int
    idle: int | None
    polling_ms: int
    cooldown_ms: int
    initial_cooldown_ms: int
    triggers: tuple[Trigger, ...]
    fallback: Fallback | None = None
    paused: int | None = None
    autoscaler: str = ""
    behavior: Manifest = field(default_factory=dict)

    @property
    def asleep(self) -> int:
        """The size while nothing is to do."""
        return self.minimum if self.idle is None else self.idle


def read(item: Object) -> Scaled:
    """What the object says. Raises ValueError, TypeError or KeyError where admission should have refused it."""
    spec = item.spec
    ref = spec["scaleTargetRef"]
    kind = kind_id(str(ref.get("apiVersion") or "apps/v1"), str(ref.get("kind") or "Deployment"))
    config = (spec.get("advanced") or {}).get("horizontalPodAutoscalerConfig") or {}
    return Scaled(
        Key(kind, item.namespace, str(ref["name"])),
        int(spec.get("minReplicaCount") or 0),
        int(spec.get("maxReplicaCount", 100)),
        None if spec.get("idleReplicaCount") is None else int(spec["idleReplicaCount"]),
        int(spec.get("pollingInterval", 30)) * 1000,
        int(spec.get("cooldownPeriod", 300)) * 1000,
        int(spec.get("initialCooldownPeriod", 0)) * 1000,
        tuple(_trigger(number, one) for number, one in enumerate(spec["triggers"])),
        _fallback(spec.get("fallback")),
        _paused(item.annotations),
        str(config.get("name") or f"keda-hpa-{item.name}"),
        config.get("behavior") or {},
    )


def _trigger(number: int, given: Manifest) -> Trigger:
    kind, metadata = str(given["type"]), given.get("metadata") or {}
    metric_type = str(given.get("metricType") or metadata.get("type") or "AverageValue")
    return Trigger(kind, f"s{number}-{kind}", metric_type, metadata)


def _fallback(given: Manifest | None) -> Fallback | None:
    if not given:
        return None
    behavior = str(given.get("behavior") or "static")
    return Fallback(int(given["failureThreshold"]), int(given["replicas"]), behavior)


def _paused(annotations: dict[str, str]) -> int | None:
    if PAUSED_REPLICAS in annotations:
        return int(annotations[PAUSED_REPLICAS])
    return -1 if annotations.get(PAUSED) == "true" else None
