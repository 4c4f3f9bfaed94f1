"""Whether the nodes of a flavor have room for pod sets that want to be near each other, by the levels of its topology.

For each set the smallest domain is taken that holds it, of the level asked for, or, where that is only preferred, of the
levels above and at last of several domains. What is found is kept for the workload until its pods have their nodes.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import numpy as np

from kube import Key
from kube.words import counted
from queue_manager.domain.cohorts.cluster_queue import Flavor
from queue_manager.domain.rooms.node_domains import NodeDomains
from queue_manager.domain.rooms.node_room import PODS, Ints, Mask, NodeRoom, Spot, Spots
from queue_manager.domain.rooms.podset import REQUIRED, UNCONSTRAINED, PodSet


@dataclass(slots=True)
class TopologyRoom:
    """Looks at ``nodes`` as they are; ``flavors`` know the labels of their topology's levels, the widest first."""

    nodes: NodeRoom
    flavors: Mapping[str, Flavor]
    _domains: NodeDomains = field(init=False)
    _answers: dict[tuple[str, tuple[PodSet, ...]], Spots | str] = field(default_factory=dict)
    _revision: int = -1

    def __post_init__(self) -> None:
        self._domains = NodeDomains(self.nodes)

    def forget(self) -> None:
        """Flavors or their topologies changed."""
        self._answers.clear()

    def obstacle(self, flavor: str, podsets: Sequence[PodSet]) -> str:
        """Why the sets find no place on the nodes of ``flavor``; "" when they do."""
        found = self.spots(flavor, podsets)
        return found if isinstance(found, str) else ""

    def spots(self, flavor: str, podsets: Sequence[PodSet], without: AbstractSet[Key] = frozenset()) -> Spots | str:
        """Where the sets would go, the workloads ``without`` being gone, or why nowhere."""
        if self._revision != self.nodes.revision:
            self._revision = self.nodes.revision
            self._answers.clear()
        if without:
            return _Layout(self._domains, self.flavors[flavor], self.nodes.free(without)).of(podsets)
        question = (flavor, tuple(podsets))
        if question not in self._answers:
            self._answers[question] = _Layout(self._domains, self.flavors[flavor], self.nodes.free(())).of(podsets)
        return self._answers[question]


@dataclass(slots=True)
class _Layout:
    """One search; ``free`` (resource by node) becomes less as sets are laid on it."""

    domains: NodeDomains
    flavor: Flavor
    free: Ints
    laid: list[Spot] = field(default_factory=list)

    @property
    def levels(self) -> tuple[str, ...]:
        return self.flavor.levels or ()

    def of(self, podsets: Sequence[PodSet]) -> Spots | str:
        """The places of all sets, or why the first of them has none."""
        for unit in _units(podsets):
            if not any(self._try(unit, inside) for inside in self._choices(unit)):
                return self._words(unit[0])
        return tuple(self.laid)

    def _choices(self, unit: Sequence[PodSet]) -> Iterator[Mask]:
        """The domains that may do, the smallest of the level asked for first; without constraint, or at last, all nodes."""
        ask, copies = unit[0].ask, self._copies(unit[0])
        if ask.nearness != UNCONSTRAINED:
            for place in range(self.levels.index(ask.level), -1, -1):
                domains = self.domains.by(self.levels[: place + 1])
                sums = domains.sums(copies)
                enough = np.flatnonzero(sums >= unit[0].pods)
                for number in enough[np.argsort(sums[enough], kind="stable")].tolist():
                    yield domains.of_node == number
                if ask.nearness == REQUIRED:
                    return
        yield self.domains.by(self.levels).of_node >= 0

    def _try(self, unit: Sequence[PodSet], inside: Mask) -> bool:
        """Lay the sets of a unit on the nodes ``inside``; leaves nothing laid where one of them does not fit."""
        before = len(self.laid)
        for podset in unit:
            counts = self._shares(podset, np.where(inside, self._copies(podset), 0))
            slots = np.flatnonzero(counts)
            self.laid.append(Spot((*podset.requests, (PODS, 1)), slots, counts[slots]))
            self._move(self.laid[-1], -1)
            if int(counts.sum()) < podset.pods:
                for spot in self.laid[before:]:
                    self._move(spot, 1)
                del self.laid[before:]
                return False
        return True

    def _shares(self, podset: PodSet, copies: Ints) -> Ints:
        """How many pods of the set go to which node, the roomiest first; slices as wholes."""
        ask = podset.ask
        if not ask.slice_level:
            return self._fill(copies, podset.pods)
        domains = self.domains.by(self.levels[: self.levels.index(ask.slice_level) + 1])
        whole = domains.sums(copies) // ask.slice_size * ask.slice_size
        counts, left = np.zeros_like(copies), podset.pods
        for number in np.argsort(-whole, kind="stable").tolist():
            part = min(left, int(whole[number]))
            if not part:
                break
            counts += self._fill(np.where(domains.of_node == number, copies, 0), part)
            left -= part
        return counts

    def _fill(self, copies: Ints, pods: int) -> Ints:
        order = np.lexsort((self.domains.rank(), -copies))
        room = copies[order]
        counts = np.zeros_like(copies)
        counts[order] = np.clip(pods - (np.cumsum(room) - room), 0, room)
        return counts

    def _copies(self, podset: PodSet) -> Ints:
        """How many pods of the set fit on each node that they may go to."""
        nodes = self.domains.nodes
        needs = (*podset.requests, (PODS, 1))
        rows = [nodes.row_of(resource) for resource, _ in needs]
        mask = self.domains.allowed(self.flavor, podset.limits) & (self.domains.by(self.levels).of_node >= 0)
        if -1 in rows:
            return np.zeros(nodes.size, np.int64)
        need = np.array([amount for _, amount in needs], np.int64).reshape(-1, 1)
        fits: Ints = np.where(mask, np.maximum((self.free[rows] // need).min(axis=0), 0), 0)
        return fits

    def _move(self, spot: Spot, sign: int) -> None:
        for resource, amount in spot.amounts:
            row = self.domains.nodes.row_of(resource)
            if row >= 0:
                self.free[row, spot.slots] += sign * amount * spot.counts

    def _words(self, podset: PodSet) -> str:
        ask, copies, name = podset.ask, self._copies(podset), self.flavor.name
        slices = f", in slices of {ask.slice_size} in one {ask.slice_level} each" if ask.slice_level else ""
        if ask.nearness != REQUIRED:
            return (
                f"the nodes of flavor {name} have room for {int(copies.sum())} of {counted(podset.pods, 'pod')}{slices}"
            )
        domains = self.domains.by(self.levels[: self.levels.index(ask.level) + 1])
        mask = self.domains.allowed(self.flavor, podset.limits)
        known = np.unique(domains.of_node[mask & (domains.of_node >= 0)])
        if not len(known):
            return f"no node of flavor {name} that the pods may go to is in a domain of {ask.level}"
        sums = domains.sums(copies)
        best = int(known[sums[known].argmax()])
        words = f"no {ask.level} of flavor {name} has room for {counted(podset.pods, 'pod')}{slices}"
        return f"{words}: {domains.paths[best][-1]} has most, room for {int(sums[best])}"


def _units(podsets: Sequence[PodSet]) -> list[list[PodSet]]:
    """The sets that have to go to one domain together, those with most pods first."""
    units: dict[object, list[PodSet]] = {}
    for podset in sorted(podsets, key=lambda item: (-item.pods, item)):
        units.setdefault(podset.ask.group or podset, []).append(podset)
    return list(units.values())
