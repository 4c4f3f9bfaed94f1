"""What is said about the devices of a node, by the node itself and by the objects that describe it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from gang_scheduler.domain.numa import CPU_TOPOLOGY, POLICY_LABEL
from kube import Manifest, Object
from resources import Amounts, QuantityError, parse_amounts

INVENTORY = "tidegate.dev/inventory"
DEVICE_KIND = "Device.scheduling.koordinator.sh"
TOPOLOGY_KIND = "NodeResourceTopology.topology.node.k8s.io"


@dataclass(frozen=True, slots=True)
class NodeInventory:
    """Two equal ones mean the same devices."""

    inventory: Manifest = field(default_factory=dict)
    allocatable: Amounts = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    cpu_topology: str = ""


def inventory_of(node: Object, topology: Object | None, device: Object | None) -> NodeInventory:
    """What matters of a node and of the objects that describe its CPUs and its cards."""
    try:
        read = json.loads(node.annotations.get(INVENTORY) or "{}")
    except ValueError:
        read = {}
    listed = node.status.get("allocatable") or node.status.get("capacity") or {}
    try:
        amounts = parse_amounts({name: amount for name, amount in listed.items() if name == "cpu" or "gpu" in name})
    except QuantityError:
        amounts = {}
    labels = {POLICY_LABEL: node.labels[POLICY_LABEL]} if POLICY_LABEL in node.labels else {}
    described = topology.annotations.get(CPU_TOPOLOGY, "") if topology else ""
    inventory = read if isinstance(read, dict) else {}
    return NodeInventory(_with_cards(inventory, device) if device else inventory, amounts, labels, described)


def _with_cards(inventory: Manifest, device: Object) -> Manifest:
    """The cards by Koordinator's description where the node does not list any; sick ones are so by either."""
    described = [one for one in device.spec.get("devices") or () if one.get("type") == "gpu" and "minor" in one]
    sick = {one["minor"] for one in described if one.get("health") is False}
    listed = inventory.get("gpus") or [_card(one) for one in described]
    if not isinstance(listed, list):
        return inventory
    cards = [{**one, "healthy": False} if one.get("index", at) in sick else one for at, one in enumerate(listed)]
    return {**inventory, "gpus": cards}


def _card(described: Manifest) -> Manifest:
    memory = (described.get("resources") or {}).get("koordinator.sh/gpu-memory")
    numa = (described.get("topology") or {}).get("nodeID")
    return {
        "index": described["minor"],
        "memory": memory,
        "numa": numa if isinstance(numa, int) and numa >= 0 else None,
    }
