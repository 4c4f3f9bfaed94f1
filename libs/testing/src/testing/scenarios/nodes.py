"""The short way in which a scenario writes nodes, what surrounds them in the network, and how they change."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from kube import Key, Manifest, Object, Store
from testing.scenarios.errors import ScenarioError
from testing.scenarios.fields import at, flag, mapping, needed, sequence, word
from testing.scenarios.scenario import Node, NodeChange
from testing.scenarios.shorthands import numbered
from testing.scenarios.values import nano

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
RACK = "topology.tidegate.dev/rack"
INVENTORY = "tidegate.dev/inventory"
"""Annotation of a node: its NUMA nodes, cards and the links between them, as the node's agent finds them."""
PODS_PER_NODE = "110"

_NODE_KEYS = frozenset(
    {
        "name",
        "count",
        "allocatable",
        "capacity",
        "labels",
        "taints",
        "annotations",
        "unschedulable",
        "topology",
        "ready",
    }
)
_TOPOLOGY_KEYS = ("zone", "rack", "hypernode", "numa", "gpus", "nvlink")
_CHANGE_KEYS = ("ready", "unschedulable", "allocatable", "labels", "taints", "deleted")
_HYPERNODE = "HyperNode.topology.volcano.sh"


def expand_nodes(entry: Any) -> list[Node]:
    """The nodes that one element of ``nodes`` stands for: one, or ``name-0`` … where it has a ``count``."""
    short = mapping(entry, _NODE_KEYS)
    name = at("name", word, short.get("name"))
    if "count" not in short:
        return [_node(name, short)]
    return [_node(f"{name}-{number}", numbered(short, number)) for number in range(short["count"])]


def _node(name: str, short: Manifest) -> Node:
    allocatable = {"pods": PODS_PER_NODE, **at("allocatable", quantities, needed(short, "allocatable"))}
    capacity = {**allocatable, **at("capacity", quantities, short.get("capacity"))}
    topology = at("topology", mapping, short.get("topology"), _TOPOLOGY_KEYS)
    labels = {HOSTNAME: name, **_places(topology), **mapping(short.get("labels"))}
    spec = {key: short[key] for key in ("taints", "unschedulable") if short.get(key)}
    manifest = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": _annotations(short, topology)},
        "spec": spec,
        "status": {
            "capacity": capacity,
            "allocatable": allocatable,
            "conditions": [ready_condition(short.get("ready", True))],
        },
    }
    rack = [topology["rack"]] if "rack" in topology else []
    return Node(manifest, tuple(at("topology.hypernode", sequence, topology.get("hypernode"))) or tuple(rack))


def _places(topology: Manifest) -> dict[str, str]:
    return {label: str(topology[key]) for key, label in (("zone", ZONE), ("rack", RACK)) if key in topology}


def _annotations(short: Manifest, topology: Manifest) -> dict[str, str]:
    inventory = {key: topology[key] for key in ("numa", "gpus", "nvlink") if key in topology}
    own: dict[str, str] = mapping(short.get("annotations"))
    return {INVENTORY: json.dumps(inventory), **own} if inventory else own


def ready_condition(ready: bool) -> Manifest:
    """The node's Ready condition."""
    said = ("True", "KubeletReady") if ready else ("False", "KubeletNotReady")
    return {"type": "Ready", "status": said[0], "reason": said[1]}


def quantities(value: Any) -> dict[str, str]:
    """A resource list, its quantities as texts; raises ScenarioError naming the resource that has none."""
    wrong = [f"{name}: {amount!r}" for name, amount in mapping(value).items() if nano(amount) is None]
    if wrong:
        raise ScenarioError(f"{wrong[0]} is no quantity such as 500m, 2 or 1.5Gi")
    return {name: str(amount) for name, amount in mapping(value).items()}


def hypernodes(nodes: Iterable[Node], store: Store) -> list[Manifest]:
    """The HyperNodes that the nodes' topology names: those that are new, and those that have new members."""
    members: dict[str, dict[tuple[str, str], None]] = {}
    tiers: dict[str, int] = {}
    for name, tier, member in _links(nodes):
        known = store.get(Key(_HYPERNODE, "", name))
        members.setdefault(name, dict.fromkeys(_members(known)))[member] = None
        tiers.setdefault(name, int(known.spec.get("tier", tier)) if known else tier)
    return [_hypernode(name, tiers[name], found) for name, found in members.items()]


def _links(nodes: Iterable[Node]) -> Iterator[tuple[str, int, tuple[str, str]]]:
    for node in nodes:
        below = ("Node", node.manifest["metadata"]["name"])
        for tier, name in enumerate(node.hypernodes, 1):
            yield name, tier, below
            below = ("HyperNode", name)


def _members(hypernode: Object | None) -> list[tuple[str, str]]:
    members = hypernode.spec.get("members") or [] if hypernode else []
    named = [(one.get("type"), (one.get("selector") or {}).get("exactMatch", {}).get("name")) for one in members]
    return [(kind, name) for kind, name in named if kind and name]


def _hypernode(name: str, tier: int, members: Iterable[tuple[str, str]]) -> Manifest:
    listed = [{"type": kind, "selector": {"exactMatch": {"name": member}}} for kind, member in members]
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {"tier": tier, "members": listed},
    }


def parse_change(name: str, value: Any) -> NodeChange:
    """What a ``node`` step says of one node."""
    entry = mapping(value, _CHANGE_KEYS)
    if not entry:
        raise ScenarioError("it changes nothing")
    flags = {key: at(key, flag, entry[key]) for key in ("ready", "unschedulable", "deleted") if key in entry}
    taints = tuple(at("taints", sequence, entry["taints"])) if "taints" in entry else None
    allocatable = at("allocatable", quantities, entry.get("allocatable"))
    return NodeChange(name, allocatable=allocatable, labels=mapping(entry.get("labels")), taints=taints, **flags)


def change_patch(change: NodeChange, node: Object | None) -> Manifest:
    """The change as a patch of the node's manifest. Capacity follows allocatable where the two were equal."""
    patch: Manifest = {"spec": {}, "status": {}}
    if change.unschedulable is not None:
        patch["spec"]["unschedulable"] = change.unschedulable
    if change.taints is not None:
        patch["spec"]["taints"] = list(change.taints)
    if change.ready is not None:
        patch["status"]["conditions"] = [ready_condition(change.ready)]
    if change.allocatable:
        status = node.status if node else {}
        before, capacity = status.get("allocatable") or {}, status.get("capacity") or {}
        equal = [name for name in change.allocatable if nano(before.get(name)) == nano(capacity.get(name))]
        patch["status"]["allocatable"] = change.allocatable
        patch["status"]["capacity"] = {name: change.allocatable[name] for name in equal}
    patch["metadata"] = {"labels": change.labels} if change.labels else {}
    return {name: part for name, part in patch.items() if part}
