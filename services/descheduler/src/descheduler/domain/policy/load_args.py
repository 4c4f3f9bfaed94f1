"""Arguments of LowNodeLoad, as Koordinator's ``LowNodeLoadArgs``."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from descheduler.domain.policy.arguments import known, percentages, span
from descheduler.domain.policy.scope import EVERYTHING, Scope
from kube import Manifest

EXPIRY_MS = 180_000
CACHE_MS = 300_000

_POOL_KEYS = (
    *("name", "nodeSelector", "useDeviationThresholds", "lowThresholds", "highThresholds", "prodLowThresholds"),
    *("prodHighThresholds", "resourceWeights", "anomalyCondition"),
)
_KEYS = (
    *_POOL_KEYS,
    *("paused", "dryRun", "numberOfNodes", "nodeMetricExpirationSeconds", "evictableNamespaces", "podSelectors"),
    *("nodeFit", "detectorCacheTimeout", "nodePools"),
)


@dataclass(frozen=True, slots=True)
class AnomalyCondition:
    """``abnormal`` rounds in a row are borne; 1 means that a node is relieved at once. ``timeout_ms`` ends an anomaly, too."""

    abnormal: int = 5
    normal: int = 3
    timeout_ms: int = 60_000


@dataclass(frozen=True, slots=True)
class NodePool:
    """Thresholds, in thousandths of a percent, for the nodes that ``selector`` takes; None takes every one that is left."""

    name: str = "default"
    selector: Manifest | None = None
    deviation: bool = False
    low: Mapping[str, int] = field(default_factory=dict)
    high: Mapping[str, int] = field(default_factory=dict)
    prod_low: Mapping[str, int] = field(default_factory=dict)
    prod_high: Mapping[str, int] = field(default_factory=dict)
    weights: Mapping[str, int] = field(default_factory=lambda: {"cpu": 1, "memory": 1})
    anomaly: AnomalyCondition = AnomalyCondition()

    @property
    def has_thresholds(self) -> bool:
        """Whether there is anything to balance by."""
        return bool((self.low and self.high) or (self.prod_low and self.prod_high))


@dataclass(frozen=True, slots=True)
class LoadArgs:
    """``spare_nodes`` is how many nodes may be underused without anything being moved there."""

    pools: tuple[NodePool, ...] = ()
    scope: Scope = EVERYTHING
    selector: Manifest | None = None
    paused: bool = False
    dry_run: bool = False
    spare_nodes: int = 0
    expiry_ms: int = EXPIRY_MS
    cache_ms: int = CACHE_MS
    node_fit: bool = True

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was given and has no effect, in sentences."""
        return () if self.node_fit else ("nodeFit false spares nobody a place: a reservation comes first in any case",)

    @classmethod
    def of(cls, given: Manifest) -> "LoadArgs":
        """Raises ValueError for an argument that there is not, or that cannot be read."""
        known({name: given[name] for name in given if name not in ("apiVersion", "kind")}, _KEYS, "LowNodeLoad")
        shared = {name: given[name] for name in _POOL_KEYS if name in given and name not in ("name", "nodeSelector")}
        pools = [
            _pool({**one, "name": one.get("name") or f"pool {number}"}, shared) for number, one in _numbered(given)
        ]
        selectors = [one.get("selector") for one in given.get("podSelectors") or ()]
        return cls(
            tuple(pools) or (_pool({}, shared),),
            Scope.of(given.get("evictableNamespaces"), selectors),
            given.get("nodeSelector"),
            bool(given.get("paused", False)),
            bool(given.get("dryRun", False)),
            int(given.get("numberOfNodes", 0)),
            1000 * int(given.get("nodeMetricExpirationSeconds", EXPIRY_MS // 1000)),
            span(given.get("detectorCacheTimeout"), CACHE_MS),
            bool(given.get("nodeFit", True)),
        )


def _numbered(given: Manifest) -> list[tuple[int, Manifest]]:
    return list(enumerate(given.get("nodePools") or (), 1))


def _pool(given: Manifest, shared: Manifest) -> NodePool:
    """A pool; what it does not say is as for all."""
    known(given, _POOL_KEYS, "a node pool of LowNodeLoad")
    said = {**shared, **given}
    anomaly = said.get("anomalyCondition") or {}
    known(anomaly, ("timeout", "consecutiveAbnormalities", "consecutiveNormalities"), "anomalyCondition")
    usual = AnomalyCondition()
    pool = NodePool(
        str(said.get("name") or "default"),
        said.get("nodeSelector"),
        bool(said.get("useDeviationThresholds", False)),
        percentages(said.get("lowThresholds")),
        percentages(said.get("highThresholds")),
        percentages(said.get("prodLowThresholds")),
        percentages(said.get("prodHighThresholds")),
        _weights(said),
        AnomalyCondition(
            int(anomaly.get("consecutiveAbnormalities") or usual.abnormal),
            int(anomaly.get("consecutiveNormalities") or usual.normal),
            span(anomaly.get("timeout"), usual.timeout_ms),
        ),
    )
    if not pool.deviation:
        _check_order(pool.low, pool.high)
        _check_order(pool.prod_low, pool.prod_high)
    return _completed(pool)


def _weights(said: Manifest) -> dict[str, int]:
    """Of each resource that has a threshold, and of cpu and memory: 1 where nothing above 0 is given."""
    given: dict[str, Any] = said.get("resourceWeights") or {}
    names = {"cpu", "memory", *given, *(said.get("lowThresholds") or {}), *(said.get("highThresholds") or {})}
    return {name: max(int(given.get(name) or 0), 0) or 1 for name in sorted(names)}


def _check_order(low: Mapping[str, int], high: Mapping[str, int]) -> None:
    for name in low.keys() & high.keys():
        if low[name] > high[name]:
            raise ValueError(f"the low threshold of {name} is above the high one")


def _completed(pool: NodePool) -> NodePool:
    """Thresholds for each resource on both sides: memory always has one, and one that is not given bounds nothing."""
    unbounded = 0 if pool.deviation else 100_000
    pairs = []
    for low, high in ((pool.low, pool.high), (pool.prod_low, pool.prod_high)):
        names = sorted({*low, *high, "memory"}) if low and high else []
        pairs.append([{name: one.get(name, unbounded) for name in names} for one in (low, high)])
    (low, high), (prod_low, prod_high) = pairs
    return replace(pool, low=low, high=high, prod_low=prod_low, prod_high=prod_high)
