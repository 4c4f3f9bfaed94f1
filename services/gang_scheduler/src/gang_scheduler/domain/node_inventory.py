"""What is said about the devices of a node, by the node itself and by the objects that describe it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from gang_scheduler.domain.numa import CPU_TOPOLOGY, POLICY_LABEL
from kube import Manifest, Object
from resources import Amounts, QuantityError, parse_amounts

INVENTORY = "tidegate.dev/inventory"
TOPOLOGY_KIND = "NodeResourceTopology.topology.node.k8s.io"


@dataclass(frozen=True, slots=True)
class NodeInventory:
    """Two equal ones mean the same devices."""

    inventory: Manifest = field(default_factory=dict)
    allocatable: Amounts = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    cpu_topology: str = ""


def inventory_of(node: Object, topology: Object | None) -> NodeInventory:
    """What matters of a node and of the object that describes its CPUs."""
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
    return NodeInventory(read if isinstance(read, dict) else {}, amounts, labels, described)
