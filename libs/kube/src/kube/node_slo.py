"""NodeSLO: under which rules pods share a node, and what holds where nothing is said.

Source: Koordinator's ``apis/slo/v1alpha1`` and ``pkg/util/sloconfig``. Every part is off until somebody turns it on.
"""

from typing import Any

from kube.keys import Manifest

NODE_SLO = "NodeSLO.slo.koordinator.sh"
EXTENSIONS, REPORT_INTERVAL = "extensions", "metricReportIntervalSeconds"
"""Where a NodeSLO says how often a node is to tell what it used; Koordinator says it in the spec of the NodeMetric."""


def _qos(identity: int, cache_end: int, watermark: int, adjusted: int) -> Manifest:
    memory = {
        "enable": False,
        "minLimitPercent": 0,
        "lowLimitPercent": 0,
        "throttlingPercent": 0,
        "wmarkRatio": watermark,
        "wmarkScalePermill": 20,
        "wmarkMinAdj": adjusted,
        "priorityEnable": 0,
        "priority": 0,
        "oomKillGroup": 0,
    }
    return {
        "cpuQOS": {"enable": False, "groupIdentity": identity},
        "memoryQOS": memory,
        "resctrlQOS": {
            "enable": False,
            "catRangeStartPercent": 0,
            "catRangeEndPercent": cache_end,
            "mbaPercent": 100,
        },
    }


DEFAULTS: Manifest = {
    "resourceUsedThresholdWithBE": {
        "enable": False,
        "cpuSuppressThresholdPercent": 65,
        "cpuSuppressPolicy": "cpuset",
        "memoryEvictThresholdPercent": 70,
        "cpuEvictPolicy": "evictByRealLimit",
        "cpuEvictBEUsageThresholdPercent": 90,
    },
    "resourceQOSStrategy": {
        "lsrClass": _qos(2, 100, 95, -25),
        "lsClass": _qos(2, 100, 95, -25),
        "beClass": _qos(-1, 30, 95, 50),
        "systemClass": _qos(0, 100, 0, 0),
    },
    "cpuBurstStrategy": {
        "policy": "none",
        "cpuBurstPercent": 1000,
        "cfsQuotaBurstPercent": 300,
        "cfsQuotaBurstPeriodSeconds": -1,
        "sharePoolThresholdPercent": 50,
    },
    "systemStrategy": {"totalNetworkBandwidth": "0"},
}
"""The spec of a NodeSLO that says nothing. What is not named here has no default: it stays as the node has it."""


def overlaid(base: Manifest, change: Manifest) -> Manifest:
    """``base`` with ``change`` laid over it, mapping by mapping; what is null says nothing. Neither is changed."""
    result = dict(base)
    for name, value in change.items():
        if value is not None:
            result[name] = _overlaid(base.get(name), value)
    return result


def completed(spec: Manifest) -> Manifest:
    """The ``spec`` of a NodeSLO with the defaults for what it leaves out."""
    return overlaid(DEFAULTS, spec)


def _overlaid(before: Any, value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return overlaid(before if isinstance(before, dict) else {}, value)
