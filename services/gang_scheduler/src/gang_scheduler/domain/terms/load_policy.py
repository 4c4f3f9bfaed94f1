"""How much of a node may be in use before it takes no more pods.

The keys, and what they mean, are those of Koordinator's LoadAwareSchedulingArgs; a node may have its own in the annotation
``scheduling.koordinator.sh/usage-thresholds``. Unlike there, metrics that are too old keep nobody out by default, and use
counts among the scores of nodes only where ``scoreWeight`` says how much: else pods are packed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kube import Manifest, parse_duration
from kube.json_text import read_json

USAGE_THRESHOLDS = "scheduling.koordinator.sh/usage-thresholds"
MEASURED = ("cpu", "memory")

Percent = tuple[int, int]
"""Of cpu and memory; 0 means that there is no limit."""

_TYPES = ("avg", "p50", "p90", "p95", "p99")


@dataclass(frozen=True, slots=True)
class Thresholds:
    """``prod`` limits what prod pods use together, and binds prod pods only, which then do not mind ``usage``."""

    usage: Percent = (65, 95)
    prod: Percent = (0, 0)
    percentile: str = ""
    """Which aggregate of the usage counts; "" is the newest sample."""

    window_ms: int = 0
    """Over how long the aggregate is; 0 for the longest that the node reports."""


@dataclass(frozen=True, slots=True)
class LoadRanking:
    """How much it counts among the scores of nodes that one uses little: ``weight`` 0 is not at all."""

    weight: int = 0
    resources: Percent = (1, 1)
    """The weights of cpu and memory."""

    dominant: int = 0
    """The weight of the one of both that is used more, beside its own."""

    by_prod: bool = False
    """Whether for a prod pod only what prod pods use counts."""

    percentile: str = ""
    window_ms: int = 0
    """Which aggregate of the usage counts, as for thresholds."""


@dataclass(frozen=True, slots=True)
class LoadPolicy:
    """``enabled`` is whether usage matters at all."""

    enabled: bool = True
    thresholds: Thresholds = field(default_factory=Thresholds)
    factors: Percent = (85, 70)
    """How much of what a pod asks for it is thought to use."""

    expiry_ms: int = 180_000
    closes_when_expired: bool = False
    prod_with_system: bool = False
    ranking: LoadRanking = field(default_factory=LoadRanking)

    @classmethod
    def of(cls, given: Manifest | bool | None) -> "LoadPolicy":
        """The policy that these arguments describe, ``cpu`` and ``memory`` standing for usage thresholds.

        Raises ValueError for an argument that there is not, or one that cannot be read.
        """
        if given is None or isinstance(given, bool):
            return cls(enabled=given is not False)
        unknown = sorted(given.keys() - _KEYS)
        if unknown:
            raise ValueError(f"load awareness knows no {', '.join(unknown)}; there are {', '.join(sorted(_KEYS))}")
        short = {name: given[name] for name in MEASURED if name in given}
        usual = cls()
        return cls(
            bool(given.get("enabled", True)),
            _thresholds({"usageThresholds": short, **given} if short else given, usual.thresholds),
            _percent(given.get("estimatedScalingFactors"), usual.factors),
            1000 * int(given.get("nodeMetricExpirationSeconds", usual.expiry_ms // 1000)),
            bool(given.get("filterExpiredNodeMetrics", False)),
            bool(given.get("prodUsageIncludeSys", False)),
            _ranking(given),
        )

    def on(self, annotation: str | None) -> Thresholds:
        """The thresholds of a node; what its annotation does not name, or cannot be read, is as everywhere."""
        if not annotation:
            return self.thresholds
        try:
            found = read_json(annotation)
            if "aggregatedUsage" in found:
                found = {**found, "aggregated": found["aggregatedUsage"]}
            return _thresholds(found, self.thresholds)
        except (ValueError, TypeError, AttributeError):
            return self.thresholds


_KEYS = frozenset(
    {
        "enabled",
        "cpu",
        "memory",
        "usageThresholds",
        "prodUsageThresholds",
        "aggregated",
        "estimatedScalingFactors",
        "nodeMetricExpirationSeconds",
        "filterExpiredNodeMetrics",
        "prodUsageIncludeSys",
        "scoreWeight",
        "resourceWeights",
        "dominantResourceWeight",
        "scoreAccordingProdUsage",
    }
)


def _thresholds(given: Mapping[str, Any], usual: Thresholds) -> Thresholds:
    found = replace(
        usual,
        usage=_percent(given.get("usageThresholds"), usual.usage),
        prod=_percent(given.get("prodUsageThresholds"), usual.prod),
    )
    aggregated = given.get("aggregated") or {}
    if not aggregated or aggregated.keys() <= _OF_SCORES:
        return found
    percentile, window = _aggregate(aggregated, "usage")
    usage = _percent(aggregated.get("usageThresholds"), found.usage)
    return replace(found, usage=usage, percentile=percentile, window_ms=window)


_OF_SCORES = {"scoreAggregationType", "scoreAggregatedDuration"}


def _ranking(given: Mapping[str, Any]) -> LoadRanking:
    aggregated = given.get("aggregated") or {}
    return LoadRanking(
        max(0, int(given.get("scoreWeight", 0))),
        _percent(given.get("resourceWeights"), LoadRanking().resources),
        max(0, int(given.get("dominantResourceWeight", 0))),
        bool(given.get("scoreAccordingProdUsage", False)),
        *(_aggregate(aggregated, "score") if _OF_SCORES & aggregated.keys() else ()),
    )


def _aggregate(aggregated: Mapping[str, Any], use: str) -> tuple[str, int]:
    """The percentile and the window (ms) that ``aggregated`` names for ``use``: ``usage`` or ``score``."""
    percentile = str(aggregated.get(f"{use}AggregationType") or "")
    if percentile not in _TYPES:
        raise ValueError(f"{use}AggregationType {percentile!r} is none of {', '.join(_TYPES)}")
    return percentile, parse_duration(str(aggregated.get(f"{use}AggregatedDuration") or "0s"))


def _percent(given: Mapping[str, Any] | None, usual: Percent) -> Percent:
    """What is left out stays; 0 is no limit."""
    if not given:
        return usual
    cpu, memory = (int(given.get(name, default)) for name, default in zip(MEASURED, usual, strict=True))
    return cpu, memory
