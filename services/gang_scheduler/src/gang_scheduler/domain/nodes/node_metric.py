"""Reading a NodeMetric: what was measured of a node, and when."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gang_scheduler.domain.terms.load_estimate import Load
from kube import Key, Object, parse_duration, parse_time
from resources import QuantityError, parse_amounts

METRIC = "NodeMetric.slo.koordinator.sh"
REPORT_INTERVAL_MS = 60_000


NOTHING_USED = Load(0, 0)


@dataclass(frozen=True, slots=True)
class Measurement:
    """``at`` is when it was taken. ``aggregates`` are percentiles by (name, window in ms)."""

    at: int
    node: Load
    system: Load = NOTHING_USED
    pods: Mapping[Key, Load] = field(default_factory=dict)
    aggregates: Mapping[tuple[str, int], Load] = field(default_factory=dict)
    interval_ms: int = REPORT_INTERVAL_MS

    def used(self, percentile: str, window_ms: int) -> Load:
        """The aggregate, over the longest window where none is named; without one what was used last."""
        windows = [window for name, window in self.aggregates if name == percentile]
        if not windows:
            return self.node
        return self.aggregates.get((percentile, window_ms or max(windows)), self.node)


def measurement_of(metric: Object) -> Measurement | None:
    """What a NodeMetric says; None when it has no readable time or amounts yet."""
    status = metric.status
    try:
        measured = status.get("nodeMetric") or {}
        return Measurement(
            parse_time(str(status["updateTime"])),
            _load(measured.get("nodeUsage")),
            _load(measured.get("systemUsage")),
            _pods(status.get("podsMetric") or ()),
            _aggregates(measured.get("aggregatedNodeUsages") or ()),
            _interval(metric),
        )
    except (AttributeError, KeyError, TypeError, ValueError, QuantityError):
        return None


def _interval(metric: Object) -> int:
    policy = metric.spec.get("metricCollectPolicy") or {}
    return 1000 * int(policy.get("reportIntervalSeconds") or REPORT_INTERVAL_MS // 1000)


def _pods(listed: Sequence[Any]) -> dict[Key, Load]:
    return {
        Key("Pod", str(one.get("namespace") or "default"), str(one["name"])): _load(one.get("podUsage"))
        for one in listed
    }


def _aggregates(listed: Sequence[Any]) -> dict[tuple[str, int], Load]:
    return {
        (name, parse_duration(str(one.get("duration") or "0s"))): _load(usage)
        for one in listed
        for name, usage in (one.get("usage") or {}).items()
    }


def _load(usage: Any) -> Load:
    amounts = parse_amounts((usage or {}).get("resources"))
    return Load(amounts.get("cpu", 0), amounts.get("memory", 0))
