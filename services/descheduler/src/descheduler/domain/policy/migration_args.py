"""Arguments of migrations, as Koordinator's ``MigrationControllerArgs``."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from descheduler.domain.policy.arguments import Share, known, optional_count, share, span
from descheduler.domain.policy.scope import EVERYTHING, Scope
from kube import Manifest
from kube.selectors import label_selector

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
    "dryRun": "dry_run",
}
_WITHOUT_EFFECT = {
    "maxConcurrentReconciles": "every look takes all jobs, one after the other",
    "arbitrationArgs": "jobs are let in whenever anything changes, and their limits are always on",
}
_KEYS = (
    *_BOOLEANS,
    *("defaultJobMode", "defaultJobTTL", "evictionPolicy", "namespaces", "labelSelector", "priorityThreshold"),
    *("maxMigratingGlobally", "maxMigratingPerNamespace", "maxMigratingPerNode", "maxMigratingPerWorkload"),
    *("maxUnavailablePerWorkload", "objectLimiters", "skipEvictionGates", "schedulerNames", "nodeSelector"),
    *("evictQPS", "evictBurst", "defaultDeleteOptions", "minReplicas", "minPodAge"),
    *_WITHOUT_EFFECT,
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
    dry_run: bool = False
    evictions: ObjectLimiter | None = None
    """How fast pods are evicted in all; None as fast as they may."""

    grace_seconds: int | None = None
    node_selector: Manifest | None = None
    min_replicas: int = 0
    min_age_ms: int = 0
    warnings: tuple[str, ...] = ()
    """What was given and has no effect, in sentences."""

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
            evictions=_rate(given),
            grace_seconds=_grace(given.get("defaultDeleteOptions") or {}),
            node_selector=label_selector(given["nodeSelector"]) if given.get("nodeSelector") else None,
            min_replicas=int(given.get("minReplicas", 0)),
            min_age_ms=span(given.get("minPodAge"), 0),
            warnings=tuple(_warnings(given)),
            skipped=skipped,
            **{field: bool(given.get(name, False)) for name, field in _BOOLEANS.items()},
        )


def _limiter(given: Any) -> ObjectLimiter | None:
    """None where there is none, or its duration is nothing."""
    if given is None:
        return None
    known(given, ("duration", "maxMigrating", "burst"), "an object limiter")
    lasts, most = span(given.get("duration"), 0), given.get("maxMigrating") or None
    return ObjectLimiter(lasts, share(most), int(given.get("burst", 1))) if lasts else None


def _rate(given: Manifest) -> ObjectLimiter | None:
    """``evictQPS`` a second, ``evictBurst`` of them at one time; None where no rate is given."""
    rate = Fraction(str(given.get("evictQPS") or 0))
    burst = int(given.get("evictBurst", 1))
    if rate < 0 or burst < 1:
        raise ValueError(f"evictQPS {given.get('evictQPS')} with evictBurst {burst} lets nobody go")
    return ObjectLimiter(1000 * rate.denominator, Share(rate.numerator, False), burst) if rate else None


def _grace(given: Manifest) -> int | None:
    known(given, ("apiVersion", "kind", "gracePeriodSeconds"), "defaultDeleteOptions")
    seconds = given.get("gracePeriodSeconds")
    return None if seconds is None else int(seconds)


def _warnings(given: Manifest) -> Iterator[str]:
    if (given.get("arbitrationArgs") or {}).get("enabled") is False:
        raise ValueError("arbitrationArgs: arbitration is always on; skipEvictionGates opens single gates")
    yield from (f"{name} has no effect: {why}" for name, why in _WITHOUT_EFFECT.items() if name in given)


def _one_of(value: Any, values: tuple[str, ...]) -> str:
    if value not in values:
        raise ValueError(f"{value!r} is not one of {', '.join(values)}")
    return str(value)
