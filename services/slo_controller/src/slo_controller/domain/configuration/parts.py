"""The keys of the ConfigMap: what each is about, and what holds where it says nothing.

Source: Koordinator's ``apis/configuration/slo_controller_config.go`` and ``pkg/util/sloconfig``.
"""

from dataclasses import dataclass

from kube import Manifest
from kube.node_slo import DEFAULTS as NODE_SLO

__all__ = ["COLOCATION", "COLOCATION_KEY", "HOST_APPLICATIONS", "NODE_SLO", "PARTS", "Part"]

COLOCATION: Manifest = {
    "enable": False,
    "metricAggregateDurationSeconds": 300,
    "metricReportIntervalSeconds": 60,
    "cpuReclaimThresholdPercent": 60,
    "memoryReclaimThresholdPercent": 65,
    "cpuCalculatePolicy": "usage",
    "memoryCalculatePolicy": "usage",
    "degradeTimeMinutes": 15,
    "updateTimeThresholdSeconds": 300,
    "resourceDiffThreshold": 0.1,
    "midCPUThresholdPercent": 100,
    "midMemoryThresholdPercent": 100,
    "midUnallocatedPercent": 0,
    "midStaticCPUReservedPercent": 0,
    "midStaticMemoryReservedPercent": 0,
}
"""The defaults of ``colocation-config``. Caps of batch resources have none."""

HOST_APPLICATIONS = "hostApplications"
COLOCATION_KEY = "colocation-config"


@dataclass(frozen=True, slots=True)
class Part:
    """One key. ``field`` is where its strategy stands in the spec of a NodeSLO, empty where it is about something else.

    ``cluster`` and ``nodes`` are what the strategy of the cluster, and those of some nodes, are called; without a name for the
    first the strategy of the cluster is the whole but for the second.
    """

    defaults: Manifest
    field: str = ""
    cluster: str = "clusterStrategy"
    nodes: str = "nodeStrategies"


PARTS: dict[str, Part] = {
    COLOCATION_KEY: Part(COLOCATION, cluster="", nodes="nodeConfigs"),
    "resource-threshold-config": Part(NODE_SLO["resourceUsedThresholdWithBE"], "resourceUsedThresholdWithBE"),
    "resource-qos-config": Part(NODE_SLO["resourceQOSStrategy"], "resourceQOSStrategy"),
    "cpu-burst-config": Part(NODE_SLO["cpuBurstStrategy"], "cpuBurstStrategy"),
    "system-config": Part(NODE_SLO["systemStrategy"], "systemStrategy"),
    "host-application-config": Part({"applications": []}, HOST_APPLICATIONS, cluster="", nodes="nodeConfigs"),
    "cpu-normalization-config": Part({"enable": False, "ratioModel": {}}, cluster="", nodes="nodeConfigs"),
    "resource-amplification-config": Part(
        {"enable": False, "resourceAmplificationRatio": {}}, cluster="", nodes="nodeConfigs"
    ),
}
