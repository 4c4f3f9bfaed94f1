"""What is said about the devices of a node, by the node itself and by the objects that describe it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from gang_scheduler.domain.devices.cards import Card, cards_of
from gang_scheduler.domain.devices.cpu_topology import NO_WORDS, CpuWords, layout_of
from gang_scheduler.domain.devices.cpu_words import TOPOLOGY_KIND, VOLCANO_KIND, cpu_words
from gang_scheduler.domain.devices.mig_cards import MigCard, mig_cards_of
from gang_scheduler.domain.devices.nics import Nic, nics_of
from gang_scheduler.domain.devices.node_room import NodeRoom
from gang_scheduler.domain.devices.numa import NumaLayout
from gang_scheduler.domain.devices.partitions import (
    HONOR,
    MODEL,
    NO_PARTITIONS,
    POLICY,
    TABLE,
    Partitions,
    partitions_of,
)
from kube import Manifest, Object
from kube.devices import MIG_RESOURCE as MIG
from kube.json_text import read_json
from resources import QuantityError, parse_amounts

INVENTORY = "tidegate.dev/inventory"
REGISTERED, PRODUCT = "volcano.sh/node-vgpu-register", "nvidia.com/gpu.product"
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

    model: str = ""
    """Of the cards, where nobody says it of each."""

    registered: str = ""
    """What Volcano's device plugin says of the cards."""

    partitions: Partitions = NO_PARTITIONS


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
        str(node.labels.get(PRODUCT) or node.labels.get(MODEL) or (device and device.labels.get(MODEL)) or ""),
        node.annotations.get(REGISTERED) or "",
        _partitions(node, device),
    )


def _partitions(node: Object, device: Object | None) -> Partitions:
    """What Koordinator's description of the cards, or the node itself, says of sets of cards."""
    said = [device, node] if device else [node]
    tables = (one.annotations.get(TABLE) for one in said)
    models, policies = ([one.labels.get(key) for one in said] for key in (MODEL, POLICY))
    policy = HONOR if HONOR in policies else ""
    return partitions_of(next(filter(None, tables), ""), next(filter(None, models), ""), policy)


class Described(NamedTuple):
    """The devices of a node: cards, NUMA nodes, RDMA devices, and the cards that are in MIG mode."""

    cards: tuple[Card, ...]
    layout: NumaLayout
    nics: tuple[Nic, ...]
    split: tuple[MigCard, ...]
    partitions: Partitions = NO_PARTITIONS

    def empty(self) -> NodeRoom:
        """The room of the node while nothing of it is used."""
        return NodeRoom(self.cards, self.layout, self.nics, self.split, partitions=self.partitions)


@lru_cache(maxsize=4096)
def described(inventory: NodeInventory) -> Described:
    """The devices by an inventory; nodes that are alike share them."""
    try:
        read = read_json(inventory.text or "{}")
    except ValueError:
        read = {}
    found: Manifest = read if isinstance(read, dict) else {}
    listed = found.get("gpus")
    if listed and not (isinstance(listed, list) and all(isinstance(one, dict) for one in listed)):
        found = {name: part for name, part in found.items() if name != "gpus"}
    devices: list[Manifest] = read_json(inventory.device) if inventory.device else []
    if devices:
        found = _with_cards(found, devices)
    if inventory.registered and not found.get("gpus"):
        found = {**found, "gpus": _registered(inventory.registered)}
    if inventory.model and isinstance(found.get("gpus"), list):
        found = {**found, "gpus": [{**one, "model": one.get("model") or inventory.model} for one in found["gpus"]]}
    amounts = dict(inventory.allocatable)
    layout = layout_of(found, inventory.cpus, amounts.get("cpu", 0))
    cards = cards_of(found, amounts)
    if inventory.model and not found.get("gpus"):
        cards = tuple(replace(card, model=inventory.model) for card in cards)
    return Described(cards, layout, nics_of(devices), mig_cards_of(found), inventory.partitions)


def _registered(text: str) -> list[Manifest]:
    """The cards by Volcano's device plugin: for each of them ``uuid,virtual cards,MiB,model,healthy,…`` and a colon."""
    cards: list[Manifest] = []
    for index, entry in enumerate(filter(None, text.split(":"))):
        uuid, number, memory, model, healthy = (*entry.split(","), "", "", "", "", "")[:5]
        card = {"index": index, "uuid": uuid, "model": model, "healthy": healthy.lower() != "false"}
        cards.append({**card, "memory": f"{memory}Mi" if memory.isdigit() else None, "slots": number or None})
    return cards


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
        "uuid": described.get("id"),
        "labels": described.get("labels"),
        "numa": numa if isinstance(numa, int) and numa >= 0 else None,
    }


def _instances(described: Manifest) -> Manifest | None:
    """How many instances of each MIG profile a card is split into, or could be; None where it is not in MIG mode."""
    resources = described.get("resources") or {}
    return {name.removeprefix(MIG): number for name, number in resources.items() if name.startswith(MIG)} or None
