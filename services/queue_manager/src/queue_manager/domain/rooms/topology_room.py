"""Whether the nodes of a flavor have room for pod sets that want to be near each other, by the levels of its topology.

Sets are laid out as the scheduler does it, by the same function on what is free of the resources that they ask for. So who
is let in is placed, unless what only the scheduler knows stands in the way (ports, affinity, devices); and nobody is kept out
who would be placed, unless that puts another set of the same gang elsewhere. What is found is kept for the workload until its
pods have their nodes.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import numpy as np

from kube import Key
from kube.pod_sets import Nearness, units
from kube.words import counted
from queue_manager.domain.quotas.cluster_queue import Flavor
from queue_manager.domain.rooms.node_domains import NodeDomains
from queue_manager.domain.rooms.node_room import PODS, NodeRoom, Spot, Spots
from queue_manager.domain.workloads.podset import PodSet
from topology.assignment import Shortfall, lay_out, shared_domains
from topology.levels import Ints, LevelTree, Mask


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
    tree: LevelTree = field(init=False)
    laid: list[Spot] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tree = self.domains.tree(self.flavor.levels or ())

    def of(self, podsets: Sequence[PodSet]) -> Spots | str:
        """The places of all sets, or why the first of them has none."""
        for unit in units({podset: podset.pods for podset in podsets}):
            if len(unit) > 1 and self._lay_together(unit):
                continue
            for podset in unit:
                found = self._lay(podset, self.tree.levels[-1].of_node >= 0)
                if found is not None:
                    return self._words(podset, found)
            if len(unit) > 1 and unit[0].ask.nearness is Nearness.REQUIRED:
                pods = sum(podset.pods for podset in unit)
                return f"no {unit[0].ask.level} of flavor {self.flavor.name} has room for {pods} pods that have to be together"
        return tuple(self.laid)

    def _lay_together(self, unit: Sequence[PodSet]) -> bool:
        """Lay the sets of a unit in one domain; leaves nothing laid where none holds all of them."""
        before = len(self.laid)
        wanted = [(self._copies(podset), podset.pods) for podset in unit]
        for level, domain in shared_domains(self.tree, unit[0].ask, wanted):
            inside = level.nodes(domain)
            if all(self._lay(podset, inside) is None for podset in unit):
                return True
            for spot in self.laid[before:]:
                self._move(spot, 1)
            del self.laid[before:]
        return False

    def _lay(self, podset: PodSet, inside: Mask) -> Shortfall | None:
        """Lay a set on the nodes ``inside``, or say why it has no place there."""
        copies = np.where(inside, self._copies(podset), 0)
        shares = lay_out(self.tree, copies, podset.ask, podset.pods)
        if isinstance(shares, Shortfall):
            return shares
        counts = np.zeros_like(copies)
        for share in shares:
            counts += self._fill(np.where(self.tree.levels[-1].nodes(share.domain), copies, 0), share.pods)
        slots = np.flatnonzero(counts)
        self.laid.append(Spot((*podset.requests, (PODS, 1)), slots, counts[slots]))
        self._move(self.laid[-1], -1)
        return None

    def _fill(self, copies: Ints, pods: int) -> Ints:
        """How many of ``pods`` go to which node of a domain, the roomiest first."""
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
        if -1 in rows:
            return np.zeros(nodes.size, np.int64)
        need = np.array([amount for _, amount in needs], np.int64).reshape(-1, 1)
        mask = self.domains.allowed(self.flavor, podset.limits)
        fits: Ints = np.where(mask, np.maximum((self.free[rows] // need).min(axis=0), 0), 0)
        return fits

    def _move(self, spot: Spot, sign: int) -> None:
        for resource, amount in spot.amounts:
            row = self.domains.nodes.row_of(resource)
            if row >= 0:
                self.free[row, spot.slots] += sign * amount * spot.counts

    def _words(self, podset: PodSet, found: Shortfall) -> str:
        ask, name, fits = podset.ask, self.flavor.name, found.fits * podset.ask.slice_size
        slices = f", in slices of {ask.slice_size} in one {ask.slice_level} each" if ask.slice_level else ""
        if found.fault:
            return f"the pods cannot be laid out on the nodes of flavor {name}: {found.fault}"
        if not found.where:
            return f"the nodes of flavor {name} have room for {fits} of {counted(podset.pods, 'pod')}{slices}"
        level = self.tree.levels[self.tree.index(found.level)]
        if not (self.domains.allowed(self.flavor, podset.limits) & (level.of_node >= 0)).any():
            return f"no node of flavor {name} that the pods may go to is in a domain of {found.level}"
        words = f"no {found.level} of flavor {name} has room for {counted(podset.pods, 'pod')}{slices}"
        return f"{words}: {found.where} has most, room for {fits}"
