"""What the words of Koordinator, and ours, are called on nodes."""

NODE, POD, CONFIG_MAP = "Node", "Pod", "ConfigMap"
METRIC = "NodeMetric.slo.koordinator.sh"
RECOMMENDATION = "Recommendation.analysis.koordinator.sh"

PREFIX = "node.koordinator.sh"
NETWORK_BANDWIDTH = f"{PREFIX}/network-bandwidth"
STRATEGY = f"{PREFIX}/colocation-strategy"
RESERVATION = f"{PREFIX}/reservation"
OTHERS_SHARES = f"{PREFIX}/thirdPartyAllocations"
ORIGINAL = f"{PREFIX}/originExtendedAllocatable"
OPT_IN = "koordinator.sh/colocation"
"""The label of a node that says whether anything of it is lent, whatever the configuration says."""

RATIOS = {
    f"{PREFIX}/cpu-reclaim-ratio": "cpuReclaimThresholdPercent",
    f"{PREFIX}/memory-reclaim-ratio": "memoryReclaimThresholdPercent",
    f"{PREFIX}/mid-static-cpu-reserved-ratio": "midStaticCPUReservedPercent",
    f"{PREFIX}/mid-static-memory-reserved-ratio": "midStaticMemoryReservedPercent",
}
"""Labels of nodes, each a share such as 0.8, and what of the configuration they stand for, in percent."""

BATCH_CPU, BATCH_MEMORY = "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"
MID_CPU, MID_MEMORY = "kubernetes.io/mid-cpu", "kubernetes.io/mid-memory"
LENT = (BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY)

NORMALIZED = f"{PREFIX}/cpu-normalization-enabled"
"""The label of a node that says whether its cores are normalised, whatever the configuration says."""
CPU_INFO = f"{PREFIX}/cpu-basic-info"
TOPOLOGY = "NodeResourceTopology.topology.node.k8s.io"
