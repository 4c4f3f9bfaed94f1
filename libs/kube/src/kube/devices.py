"""What a binding gives a pod besides its node: cards, CPUs and parts of NUMA nodes; and what a container sees of its cards.

A binding names them in one mapping: the indexes of the cards under the resource that asks for them, ``cpuset`` (a list as
the kernel writes it), ``numaNodeResources`` (a list of {node, resources}), ``migSlices`` (a list of {card, start, profile}
with the driver's name of the instance, where it is there already), and ``reservation`` ({name, uid}) where the
pod uses the room of one. On the pod they are annotations: one of the product's own for the cards, and those of Koordinator
for what was asked for in its names, for CPUs and NUMA nodes, and for the reservation.
"""

import json
from collections.abc import Mapping, Sequence
from typing import TypeVar

from kube.environment import containers
from kube.json_text import read_json
from kube.keys import Manifest
from resources import QuantityError, parse_quantity

CARDS = "tidegate.dev/devices"
PLACE = "scheduling.koordinator.sh/resource-status"
KOORDINATOR_CARDS = "scheduling.koordinator.sh/device-allocated"
_KOORDINATOR = "koordinator.sh/"
CPU_SET = "cpuset"
NUMA_NODES = "numaNodeResources"
MIG_SLICES, MIG_RESOURCE = "migSlices", "nvidia.com/mig-"
RDMA = "koordinator.sh/rdma"
"""RDMA devices have indexes of their own; they are no cards."""
RESERVATION = "reservation"
RESERVED = "scheduling.koordinator.sh/reservation-allocated"
GIVEN = frozenset({CARDS, PLACE, KOORDINATOR_CARDS, RESERVED})
"""The annotations by which a binding tells what it gave: of a pod that is on no node yet they say nothing."""

_T = TypeVar("_T")

_OF_PLACE = (CPU_SET, NUMA_NODES)


def annotations_of(devices: Manifest) -> dict[str, str]:
    """The annotations that tell a pod's node what a binding gave the pod."""
    cards = {name: part for name, part in devices.items() if name not in (*_OF_PLACE, RESERVATION)}
    place = {name: part for name, part in devices.items() if name in _OF_PLACE}
    parts = (
        *((CARDS, cards), (KOORDINATOR_CARDS, _for_koordinator(cards))),
        *((PLACE, place), (RESERVED, devices.get(RESERVATION))),
    )
    return {key: _text(part) for key, part in parts if part}


def devices_of(annotations: Mapping[str, str]) -> Manifest:
    """What a binding gave a pod, read from its annotations; what cannot be read is left out."""
    found = _of_koordinator(annotations) if CARDS not in annotations else {}
    for name in (CARDS, PLACE):
        if name in annotations:
            found.update(_read(annotations[name]))
    return found


def chosen_devices(pod: Manifest) -> dict[str, list[int]]:
    """The card indexes chosen for ``pod`` by resource name; empty when none were or the annotation cannot be read."""
    read = _read(((pod.get("metadata") or {}).get("annotations") or {}).get(CARDS) or "")
    try:
        return {
            str(name): [int(index) for index in indexes]
            for name, indexes in read.items()
            if name not in (RDMA, MIG_SLICES)
        }
    except (ValueError, TypeError):
        return {}


def visible_devices(pod: Manifest, container: str) -> tuple[int, ...]:
    """The cards of one container, ascending.

    Where the containers' own requests add up to the number of cards, each takes its part in the order of the pod;
    otherwise (shares of cards, cards of the pod as a whole) every container that asks sees all of them, and if none
    asks, all do.
    """
    seen = {index for name, part in chosen_devices(pod).items() for index in _part(pod, container, name, part)}
    return tuple(sorted(seen))


def visible_instances(pod: Manifest, container: str) -> tuple[str, ...]:
    """The MIG instances of one container, as the driver calls them; those that are yet to be made have no name."""
    told = _read(((pod.get("metadata") or {}).get("annotations") or {}).get(CARDS) or "").get(MIG_SLICES) or ()
    by_resource: dict[str, list[str]] = {}
    try:
        for one in told:
            by_resource.setdefault(f"{MIG_RESOURCE}{one['profile']}", []).append(str(one.get("name") or ""))
    except (AttributeError, KeyError, TypeError):
        return ()
    return tuple(
        name
        for resource, names in sorted(by_resource.items())
        for name in _part(pod, container, resource, names)
        if name
    )


def _part(pod: Manifest, container: str, resource: str, given: Sequence[_T]) -> Sequence[_T]:
    """What one container has of what its pod was given."""
    asked = {str(item.get("name")): _count(item, resource) for item in containers(pod)}
    if sum(asked.values()) != len(given):
        return given if asked.get(container) or not any(asked.values()) else ()
    start = 0
    for other, count in asked.items():
        if other == container:
            return given[start : start + count]
        start += count
    return ()


def device_variables(pod: Manifest, container: str) -> dict[str, str]:
    """The variables that show a container its cards, and hide all others from one that has none."""
    cards = ",".join([*map(str, visible_devices(pod, container)), *visible_instances(pod, container)])
    return {
        "CUDA_VISIBLE_DEVICES": cards,
        "NVIDIA_VISIBLE_DEVICES": cards or "void",
        # CUDA's own order is fastest first; the indexes here are NVML's, which is the order on the bus.
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }


def _for_koordinator(cards: Manifest) -> Manifest:
    """What was asked for in Koordinator's names, as its own agents read it."""
    told: Manifest = {}
    for name, indexes in sorted(cards.items()):
        if name.startswith(_KOORDINATOR):
            kind = "rdma" if name == RDMA else "gpu"
            told.setdefault(kind, []).extend({"minor": index} for index in indexes)
    return told


def _of_koordinator(annotations: Mapping[str, str]) -> Manifest:
    """The cards of a pod that Koordinator's scheduler placed."""
    if KOORDINATOR_CARDS not in annotations:
        return {}
    given = _read(annotations[KOORDINATOR_CARDS])
    found: Manifest = {}
    for kind, resource in (("gpu", "koordinator.sh/gpu"), ("rdma", RDMA)):
        try:
            indexes = [int(one["minor"]) for one in given.get(kind) or ()]
        except (KeyError, TypeError, ValueError):
            continue
        if indexes:
            found[resource] = indexes
    return found


def _text(part: Manifest) -> str:
    return json.dumps(part, separators=(",", ":"), sort_keys=True)


def _read(text: str) -> Manifest:
    try:
        read = read_json(text) if text else {}
    except (ValueError, TypeError):
        return {}
    return read if isinstance(read, dict) else {}


def _count(container: Manifest, resource: str) -> int:
    limits = (container.get("resources") or {}).get("limits") or {}
    requests = (container.get("resources") or {}).get("requests") or {}
    try:
        return parse_quantity(limits.get(resource) or requests.get(resource) or 0)
    except QuantityError:
        return 0
