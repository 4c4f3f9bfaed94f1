"""Arguments of migrations, as Koordinator's ``MigrationControllerArgs``."""

from dataclasses import dataclass
from typing import Any

from descheduler.domain.policy.arguments import Share, known, optional_count, share, span
from descheduler.domain.policy.scope import EVERYTHING, Scope
from kube import Manifest

EVICT_DIRECTLY, RESERVATION_FIRST = "EvictDirectly", "ReservationFirst"
MODES = (EVICT_DIRECTLY, RESERVATION_FIRST)
EVICTORS = ("Eviction", "Delete", "SoftEviction")
TTL_MS = 300_000
GATES = frozenset(
    [
        *("MaxUnavailablePerWorkload", "MaxMigratingPerWorkload", "MaxMigratingPerNode", "MaxMigratingPerNamespace"),
        *("MaxMigratingGlobally", "ExpectedReplicas", "PVC", "BarePods", "LocalStorage", "SystemCritical"),
        *("PriorityThreshold", "LabelSelector", "Namespaces", "NodeFit"),
    ]
)
_BOOLEANS = {
    "evictFailedBarePods": "failed_bare",
    "evictAllBarePods": "bare",
    "evictLocalStoragePods": "local_storage",
    "evictSystemCriticalPods": "system_critical",
    "ignorePvcPods": "spares_claims",
    "skipCheckExpectedReplicas": "any_replicas",
    "nodeFit": "node_fit",
}
_KEYS = (
    *_BOOLEANS,
    *("defaultJobMode", "defaultJobTTL", "evictionPolicy", "namespaces", "labelSelector", "priorityThreshold"),
    *("maxMigratingGlobally", "maxMigratingPerNamespace", "maxMigratingPerNode", "maxMigratingPerWorkload"),
    *("maxUnavailablePerWorkload", "objectLimiters", "skipEvictionGates", "schedulerNames"),
)


@dataclass(frozen=True, slots=True)
class ObjectLimiter:
    """So many migrations of one object's pods in ``span_ms``; None as many as may go on at once. ``burst`` go without a wait."""

    span_ms: int = 300_000
    most: Share | None = None
    burst: int = 1


@dataclass(frozen=True, slots=True)
class MigrationArgs:
    """None is no limit, and for workloads one by the number of replicas."""

    mode: str = RESERVATION_FIRST
    ttl_ms: int = TTL_MS
    evictor: str = "Eviction"
    scope: Scope = EVERYTHING
    globally: int | None = None
    per_namespace: int | None = None
    per_node: int | None = 2
    per_workload: Share | None = None
    unavailable: Share | None = None
    workload_limiter: ObjectLimiter | None = ObjectLimiter()
    namespace_limiter: ObjectLimiter | None = None
    scheduler_names: tuple[str, ...] = ()
    """Only pods of these schedulers; all where none is named."""

    failed_bare: bool = False
    bare: bool = False
    local_storage: bool = False
    system_critical: bool = False
    spares_claims: bool = False
    any_replicas: bool = False
    node_fit: bool = False
    skipped: frozenset[str] = frozenset()

    @classmethod
    def of(cls, given: Manifest) -> "MigrationArgs":
        """Raises ValueError for an argument that there is not, or that cannot be read."""
        known(given, _KEYS, "migration")
        skipped = frozenset(given.get("skipEvictionGates") or ())
        known(dict.fromkeys(skipped, True), GATES, "skipEvictionGates")
        limiters = given.get("objectLimiters") or {}
        known(limiters, ("workload", "namespace"), "objectLimiters")
        scope = Scope.of(given.get("namespaces"), [given.get("labelSelector")], given.get("priorityThreshold"))
        return cls(
            _one_of(given.get("defaultJobMode", RESERVATION_FIRST), MODES),
            span(given.get("defaultJobTTL"), TTL_MS),
            _one_of(given.get("evictionPolicy", "Eviction"), EVICTORS),
            scope,
            optional_count(given.get("maxMigratingGlobally")),
            optional_count(given.get("maxMigratingPerNamespace")),
            optional_count(given.get("maxMigratingPerNode", 2)),
            share(given.get("maxMigratingPerWorkload")),
            share(given.get("maxUnavailablePerWorkload")),
            _limiter(limiters["workload"]) if "workload" in limiters else ObjectLimiter(),
            _limiter(limiters.get("namespace")),
            tuple(given.get("schedulerNames") or ()),
            skipped=skipped,
            **{field: bool(given.get(name, False)) for name, field in _BOOLEANS.items()},
        )


def _limiter(given: Any) -> ObjectLimiter | None:
    """None where there is none, or its duration is nothing."""
    if given is None:
        return None
    known(given, ("duration", "maxMigrating", "burst"), "an object limiter")
    lasts = span(given.get("duration"), 0)
    return ObjectLimiter(lasts, share(given.get("maxMigrating")), int(given.get("burst", 1))) if lasts else None


def _one_of(value: Any, values: tuple[str, ...]) -> str:
    if value not in values:
        raise ValueError(f"{value!r} is not one of {', '.join(values)}")
    return str(value)
