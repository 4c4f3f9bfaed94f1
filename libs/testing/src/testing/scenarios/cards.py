"""The invariant of devices: what pods were given of a node's cards and CPUs, as their annotations tell, is given once."""

from collections import Counter
from collections.abc import Iterator
from typing import TypeVar

from kube import Manifest, Object, Store
from kube.devices import CPU_SET, MIG_SLICES, chosen_devices, devices_of
from resources import Amounts
from testing.scenarios.footprint import footprint
from testing.scenarios.membership import is_finished, node_of, pods_of

_Place = TypeVar("_Place", tuple[str, int], tuple[str, str])

WHOLE = 100
"""Percent of a card."""

_SHARED = "koordinator.sh/"
_PERCENT = (
    ("koordinator.sh/gpu-core", "koordinator.sh/gpu"),
    ("koordinator.sh/gpu-memory-ratio", "koordinator.sh/gpu"),
)
"""What a card has of percents, each by its names: of its cores and of its memory. They are of all the cards of a pod together;
who asks for memory in bytes alone has no percent."""

_VIRTUAL, _VIRTUAL_PERCENT = "volcano.sh/vgpu-number", "volcano.sh/vgpu-cores"
"""A request of virtual cards says in percent how much of each."""


def given_twice(store: Store) -> list[str]:
    """Cards of which more than all, and CPUs that more than one pod was given, in words."""
    cards: tuple[Counter[tuple[str, int]], ...] = tuple(Counter() for _ in _PERCENT)
    cpus: Counter[tuple[str, int]] = Counter()
    instances: Counter[tuple[str, str]] = Counter()
    for pod in pods_of(store):
        if node_of(pod) and not is_finished(pod):
            for index, percents in _cards(pod):
                for used, percent in zip(cards, percents, strict=True):
                    used[node_of(pod), index] += percent
            cpus.update((node_of(pod), cpu) for cpu in _cpus(pod))
            instances.update((node_of(pod), f"{one['card']}:{one['start']}") for one in _instances(pod))
    return [
        *dict.fromkeys(
            f"card {index} of node {node} is given out to {percent} %"
            for used in cards
            for (node, index), percent in _over(used, WHOLE)
        ),
        *(f"CPU {cpu} of node {node} belongs to {pods} pods" for (node, cpu), pods in _over(cpus, 1)),
        *(f"MIG instance {name} of node {node} belongs to {pods} pods" for (node, name), pods in _over(instances, 1)),
    ]


def _over(counts: Counter[_Place], most: int) -> list[tuple[_Place, int]]:
    return sorted((place, count) for place, count in counts.items() if count > most)


def _instances(pod: Object) -> list[Manifest]:
    """The MIG instances of a pod. Two that begin at the same memory slice of a card overlap."""
    listed = devices_of(pod.annotations).get(MIG_SLICES)
    found = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return [one for one in found if one.keys() >= {"card", "start"}]


def _cards(pod: Object) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The index of each card of a pod, and how much the pod has of its cores and of its memory, in percent."""
    asked = footprint(pod)
    for resource, indexes in chosen_devices(pod.manifest()).items():
        yield from ((index, _percents(resource, asked, len(indexes))) for index in indexes)


def _percents(resource: str, asked: Amounts, cards: int) -> tuple[int, ...]:
    if resource == _VIRTUAL:
        return asked.get(_VIRTUAL_PERCENT, 0), 0
    if resource.startswith(_SHARED):
        return tuple(next((asked[name] for name in names if name in asked), 0) // cards for names in _PERCENT)
    return WHOLE, WHOLE


def _cpus(pod: Object) -> Iterator[int]:
    """The CPUs of a pod's own; a list as the kernel writes it, such as ``0-3,8``."""
    for part in filter(None, str(devices_of(pod.annotations).get(CPU_SET) or "").split(",")):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)
