"""What the words of Koordinator, and ours, are called on nodes."""

NODE, POD, CONFIG_MAP = "Node", "Pod", "ConfigMap"
METRIC = "NodeMetric.slo.koordinator.sh"

PREFIX = "node.koordinator.sh"
NETWORK_BANDWIDTH = f"{PREFIX}/network-bandwidth"
