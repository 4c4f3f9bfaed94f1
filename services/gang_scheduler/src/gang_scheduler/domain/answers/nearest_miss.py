"""The node that comes closest to taking a pod, and what it lacks; and the network domain closest to holding a gang."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gang_scheduler.domain.columns.vectors import Ints, Mask
from gang_scheduler.domain.nodes.filters import static_filters
from gang_scheduler.domain.pods.pod_record import PodRecord
from gang_scheduler.domain.room.room import Room
from gang_scheduler.domain.terms.network_words import Topology
from kube import Manifest
from kube.words import counted
from resources import Amounts, format_amounts

_RACK, _ZONE = "topology.kubernetes.io/rack", "topology.kubernetes.io/zone"
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Miss:
    """``rules`` are the rules that ``node`` breaks, ``missing`` is what it has too little of."""

    node: str
    place: str
    """Where the node is: ``rack r2``, ``domain s1``; "" where nothing says so."""

    rules: tuple[str, ...]
    missing: Amounts
    free: Amounts
    """What is free there of that."""

    def sentence(self, pod: str) -> str:
        """``1 more nvidia.com/gpu on node n4 (domain r2) would do for pod g-0: 7 are free there``."""
        where = f"node {self.node}" + (f" ({self.place})" if self.place else "")
        free = format_amounts(self.free)
        more = " and ".join(f"{amount} more {name}" for name, amount in format_amounts(self.missing).items())
        have = ", ".join(f"{name} {amount}" for name, amount in free.items())
        broken = " and ".join(self.rules)
        if self.rules and self.missing:
            return f"{where} comes closest for pod {pod}: nodes like it {broken}, and {more} would be needed there"
        if self.rules:
            return f"{where} would take pod {pod} but for one rule: nodes like it {broken}"
        return f"{more} on {where} would do for pod {pod}; free there: {have}"

    def manifest(self, pod: str) -> Manifest:
        """As plain data."""
        return {
            "pod": pod,
            "node": self.node,
            "place": self.place,
            "rules": list(self.rules),
            "missing": format_amounts(self.missing),
            "free": format_amounts(self.free),
            "message": self.sentence(pod),
        }


def nearest_miss(room: Room, record: PodRecord) -> Miss | None:
    """The node that breaks the fewest rules, then lacks the fewest resources, then the smallest part of what is needed.

    None when there is no node, or when one would take the pod.
    """
    table = room.table
    if not table.exists.any():
        return None
    rules = [*static_filters(record.shape.rules, table), *room.coupling_masks(record)]
    short = _short(room, record)
    devices = [(phrase, mask) for _, phrase, mask in table.devices.filters(record.shape.devices)]
    devices = [(phrase, mask | (short > 0).any(axis=0)) for phrase, mask in devices]
    rules += [*devices, ("have another NUMA policy than the pod", table.devices.agrees(record.shape.devices))]
    broken = np.zeros(table.size, np.int64)
    for _, mask in rules:
        broken += ~mask
    slot = _closest(room, record, broken, short)
    if not broken[slot] and not short[:, slot].any():
        return None
    return _miss(room, record, slot, [(phrase, mask) for phrase, mask in rules if not mask[slot]], short)


def domain_miss(room: Room, topology: Topology, records: Sequence[PodRecord]) -> Manifest:
    """The network domain with the most room for the members, counted shape by shape; empty where there is no domain."""
    counts: dict[int, list[PodRecord]] = {}
    for record in records:
        counts.setdefault(record.shape.index, []).append(record)
    best: tuple[int, int, str] | None = None
    domains, highest = room.hyper_nodes.domains().domains, room.hyper_nodes.highest(topology)
    for domain in domains:
        if highest is not None and domain.tier > highest:
            continue
        views = (room.view(batch[0]).inside(domain.nodes) for batch in counts.values())
        fit = sum(min(view.total, len(batch)) for view, batch in zip(views, counts.values(), strict=True))
        best = min(best or (1, 0, ""), (-fit, domain.tier, domain.name))
    if best is None:
        return {}
    places = -best[0]
    message = f"domain {best[2]} of tier {best[1]} comes closest: it has room for {places} of {counted(len(records), 'member')}"
    return {"domain": best[2], "tier": best[1], "places": places, "needed": len(records), "message": message}


def place_of(room: Room, slot: int) -> str:
    """What is said of where a node is: its rack, its lowest network domain, or its zone."""
    labels = room.table.labels_at(slot)
    if labels.get(_RACK):
        return f"rack {labels[_RACK]}"
    domains = (f"domain {domain.name}" for domain in room.hyper_nodes.domains().domains if domain.nodes[slot])
    return next(domains, f"zone {labels[_ZONE]}" if labels.get(_ZONE) else "")


def _short(room: Room, record: PodRecord) -> Ints:
    """How much of each resource that the pod asks for every node lacks (resource by node)."""
    table, rows = room.table, room.table.rows_for(record.shape)
    free = np.maximum(table.allocatable[rows] - table.used[rows], 0)
    short: Ints = np.maximum(record.shape.needs_vector - free, 0)
    return short


def _closest(room: Room, record: PodRecord, broken: Ints, short: Ints) -> int:
    part = (short * _MILLION // record.shape.needs_vector).max(axis=0)
    order = np.lexsort((room.table.rank(), part, np.count_nonzero(short, axis=0), broken, ~room.table.exists))
    return int(order[0])


def _miss(room: Room, record: PodRecord, slot: int, rules: Sequence[tuple[str, Mask]], short: Ints) -> Miss:
    table, names = room.table, list(record.shape.requests)
    missing = {name: int(short[place, slot]) for place, name in enumerate(names) if short[place, slot]}
    rows = dict(zip(names, table.rows_for(record.shape), strict=True))
    free = {name: max(0, int(table.allocatable[rows[name], slot] - table.used[rows[name], slot])) for name in missing}
    return Miss(table.names[slot], place_of(room, slot), tuple(phrase for phrase, _ in rules), missing, free)
