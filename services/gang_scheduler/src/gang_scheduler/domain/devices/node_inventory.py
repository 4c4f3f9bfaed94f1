"""What is said about the devices of a node, by the node itself and by the objects that describe it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from gang_scheduler.domain.devices.cards import Card, cards_of
from gang_scheduler.domain.devices.cpu_topology import NO_WORDS, CpuWords, layout_of
from gang_scheduler.domain.devices.cpu_words import TOPOLOGY_KIND, VOLCANO_KIND, cpu_words
from gang_scheduler.domain.devices.mig_cards import MigCard, mig_cards_of
from gang_scheduler.domain.devices.nics import Nic, nics_of
from gang_scheduler.domain.devices.numa import NumaLayout
from kube import Manifest, Object
from kube.devices import MIG_RESOURCE as MIG
from resources import QuantityError, parse_amounts

INVENTORY = "tidegate.dev/inventory"
DEVICE_KIND = "Device.scheduling.koordinator.sh"
DESCRIPTIONS = (DEVICE_KIND, TOPOLOGY_KIND, VOLCANO_KIND)
"""The kinds that describe what a node of the same name has."""


@dataclass(frozen=True, slots=True)
class NodeInventory:
    """Two equal ones mean the same devices. ``text`` is what the node's agent says, as JSON.

    It stands with the Node, or with the Device where the Node is a kubelet's.
    """

    text: str = ""
    allocatable: tuple[tuple[str, int], ...] = ()
    cpus: CpuWords = NO_WORDS
    device: str = ""
    """What Koordinator's agent says of the cards, as JSON."""


def inventory_of(node: Object, descriptions: Mapping[str, Object]) -> NodeInventory:
    """What matters of a node and of the objects, by kind, that describe its CPUs and its cards."""
    listed = node.status.get("allocatable") or node.status.get("capacity") or {}
    try:
        amounts = parse_amounts({name: amount for name, amount in listed.items() if name == "cpu" or "gpu" in name})
    except QuantityError:
        amounts = {}
    device = descriptions.get(DEVICE_KIND)
    said = node.annotations.get(INVENTORY) or (device.annotations.get(INVENTORY) if device else None)
    return NodeInventory(
        said or "",
        tuple(sorted(amounts.items())),
        cpu_words(node, descriptions),
        json.dumps(device.spec.get("devices") or []) if device else "",
    )


class Described(NamedTuple):
    """The devices of a node: cards, NUMA nodes, RDMA devices, and the cards that are in MIG mode."""

    cards: tuple[Card, ...]
    layout: NumaLayout
    nics: tuple[Nic, ...]
    split: tuple[MigCard, ...]


@lru_cache(maxsize=4096)
def described(inventory: NodeInventory) -> Described:
    """The devices by an inventory; nodes that are alike share them."""
    try:
        read = json.loads(inventory.text or "{}")
    except ValueError:
        read = {}
    found: Manifest = read if isinstance(read, dict) else {}
    devices: list[Manifest] = json.loads(inventory.device) if inventory.device else []
    if devices:
        found = _with_cards(found, devices)
    amounts = dict(inventory.allocatable)
    layout = layout_of(found, inventory.cpus, amounts.get("cpu", 0))
    return Described(cards_of(found, amounts), layout, nics_of(devices), mig_cards_of(found))


def _with_cards(inventory: Manifest, devices: list[Manifest]) -> Manifest:
    """The cards by Koordinator's description where the node does not list any; sick ones are so by either."""
    described = [one for one in devices if one.get("type") == "gpu" and "minor" in one]
    sick = {one["minor"] for one in described if one.get("health") is False}
    listed = inventory.get("gpus") or [_card(one) for one in described]
    if not isinstance(listed, list):
        return inventory
    switch = {one["minor"]: (one.get("topology") or {}).get("pcieID") for one in described}
    split = {one["minor"]: _instances(one) for one in described}
    numbered = [(one.get("index", at), one) for at, one in enumerate(listed)]
    listed = [{"pcie": switch.get(index), "mig": split.get(index), **one} for index, one in numbered]
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


def _instances(described: Manifest) -> Manifest | None:
    """How many instances of each MIG profile a card is split into, or could be; None where it is not in MIG mode."""
    resources = described.get("resources") or {}
    return {name.removeprefix(MIG): number for name, number in resources.items() if name.startswith(MIG)} or None
