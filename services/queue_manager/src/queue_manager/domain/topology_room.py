"""Whether the nodes of a flavor have room for pod sets that want to be near each other, by the levels of its topology.

For each set the smallest domain is taken that holds it, of the level asked for, or, where that is only preferred, of the
levels above and at last of several domains. What is found is kept for the workload until its pods have their nodes.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from kube import Key, Manifest
from kube.selectors import matches
from queue_manager.domain.cluster_queue import Flavor
from queue_manager.domain.node_room import NodeRoom, NodeView, Spots
from queue_manager.domain.podset import REQUIRED, UNCONSTRAINED, PodSet
from queue_manager.domain.sums import accumulate
from queue_manager.domain.tolerations import tolerates

Domain = list[str]
"""The names of the nodes in it."""


@dataclass(slots=True)
class TopologyRoom:
    """``topologies`` are the labels of each topology's levels, the widest first."""

    nodes: NodeRoom
    topologies: Mapping[str, tuple[str, ...]]
    flavors: Mapping[str, Flavor]
    _limits: dict[str, tuple[Manifest, list[Manifest], list[Manifest] | None]] = field(default_factory=dict)

    def obstacle(self, flavor: str, podsets: Sequence[PodSet], without: AbstractSet[Key] = frozenset()) -> str:
        """Why the sets find no place on the nodes of ``flavor``, the workloads ``without`` being gone; "" when they do."""
        found = self.spots(flavor, podsets, without)
        return found if isinstance(found, str) else ""

    def spots(self, flavor: str, podsets: Sequence[PodSet], without: AbstractSet[Key] = frozenset()) -> Spots | str:
        """Where the sets would go, or why nowhere."""
        levels = self.topologies.get(self.flavors[flavor].topology, ())
        free, taken = self.nodes.free(without), Spots()
        for unit in _units(podsets):
            if not any(
                self._try(flavor, levels, domain, unit, free, taken)
                for domain in self._domains(flavor, levels, unit, free)
            ):
                return self._words(flavor, levels, unit, free)
        return taken

    def _domains(self, flavor: str, levels: Sequence[str], unit: Sequence[PodSet], free: Spots) -> Iterator[Domain]:
        """The domains that may do, the smallest of the level asked for first; without constraint, or at last, all nodes."""
        ask = unit[0].ask
        copies = self._copies(flavor, levels, unit[0], free)
        if ask.nearness != UNCONSTRAINED:
            for place in range(levels.index(ask.level), -1, -1):
                sized = [
                    (sum(copies[name] for name in names), key, names)
                    for key, names in self._split(levels[: place + 1], copies)
                ]
                yield from (names for size, _, names in sorted(sized) if size >= unit[0].pods)
                if ask.nearness == REQUIRED:
                    return
        yield sorted(copies)

    def _try(
        self, flavor: str, levels: Sequence[str], domain: Domain, unit: Sequence[PodSet], free: Spots, taken: Spots
    ) -> bool:
        """Lay the sets of a unit on the nodes of a domain; leaves nothing taken where one of them does not fit."""
        laid: list[tuple[str, PodSet, int]] = []
        for podset in unit:
            copies = {name: n for name, n in self._copies(flavor, levels, podset, free).items() if name in set(domain)}
            shares = self._shares(levels, copies, podset)
            for name, number in shares.items():
                laid.append((name, podset, number))
                _move(free, name, podset, -number)
            if sum(shares.values()) < podset.pods:
                for name, done, number in laid:
                    _move(free, name, done, number)
                return False
        for name, podset, number in laid:
            _move(taken, name, podset, number)
        return True

    def _shares(self, levels: Sequence[str], copies: Mapping[str, int], podset: PodSet) -> dict[str, int]:
        """How many pods of the set go to which node, the roomiest first; slices as wholes."""
        ask, left, found = podset.ask, podset.pods, dict[str, int]()
        parts = [sorted(copies)]
        if ask.slice_level:
            keys = levels[: levels.index(ask.slice_level) + 1]
            parts = [names for _, names in sorted(self._split(keys, copies))]
            parts.sort(key=lambda names: -sum(copies[name] for name in names))
        for names in parts:
            room = sum(copies[name] for name in names) // ask.slice_size * ask.slice_size
            part = min(left, room)
            left -= part
            for name in sorted(names, key=lambda name: (-copies[name], name)):
                number = min(part, copies[name])
                part -= number
                if number:
                    found[name] = number
        return found

    def _split(self, keys: Sequence[str], names: Mapping[str, int]) -> list[tuple[tuple[str, ...], Domain]]:
        domains: dict[tuple[str, ...], Domain] = {}
        for name in names:
            labels = self.nodes.nodes[name].labels
            domains.setdefault(tuple(labels[key] for key in keys), []).append(name)
        return list(domains.items())

    def _copies(self, flavor: str, levels: Sequence[str], podset: PodSet, free: Spots) -> dict[str, int]:
        """How many pods of the set fit on each node that they may go to."""
        needs = {**dict(podset.requests), "pods": 1}
        found: dict[str, int] = {}
        for name, left in free.items():
            view = self.nodes.nodes[name]
            if all(level in view.labels for level in levels) and self._allows(self.flavors[flavor], podset, view):
                found[name] = max(0, min(left.get(resource, 0) // amount for resource, amount in needs.items()))
        return found

    def _allows(self, flavor: Flavor, podset: PodSet, view: NodeView) -> bool:
        if any(view.labels.get(name) != value for name, value in flavor.labels.items()):
            return False
        selector, tolerations, terms = self._parts(podset.limits)
        if any(view.labels.get(name) != value for name, value in selector.items()):
            return False
        if not all(
            any(tolerates(item, taint) for item in (*tolerations, *flavor.tolerations)) for taint in view.taints
        ):
            return False
        return terms is None or any(_holds(term, view) for term in terms)

    def _parts(self, limits: str) -> tuple[Manifest, list[Manifest], list[Manifest] | None]:
        if not limits:
            return {}, [], None
        if limits not in self._limits:
            selector, tolerations, required = json.loads(limits)
            terms = None if required is None else list(required.get("nodeSelectorTerms") or ())
            self._limits[limits] = (selector or {}, list(tolerations or ()), terms)
        return self._limits[limits]

    def _words(self, flavor: str, levels: Sequence[str], unit: Sequence[PodSet], free: Spots) -> str:
        podset = unit[0]
        ask, copies = podset.ask, self._copies(flavor, levels, podset, free)
        slices = f", in slices of {ask.slice_size} in one {ask.slice_level} each" if ask.slice_level else ""
        if ask.nearness != REQUIRED:
            total = sum(copies.values())
            return f"the nodes of flavor {flavor} have room for {total} of {podset.pods} pods{slices}"
        keys = levels[: levels.index(ask.level) + 1]
        sized = [(-sum(copies[name] for name in names), key[-1]) for key, names in self._split(keys, copies)]
        if not sized:
            return f"no node of flavor {flavor} that the pods may go to is in a domain of {ask.level}"
        most, where = min(sized)
        words = f"no {ask.level} of flavor {flavor} has room for {podset.pods} pods{slices}"
        return f"{words}: {where} has most, room for {-most}"


def _move(spots: Spots, name: str, podset: PodSet, number: int) -> None:
    amounts = {resource: amount * abs(number) for resource, amount in podset.requests}
    accumulate(spots.setdefault(name, {}), {**amounts, "pods": abs(number)}, 1 if number > 0 else -1)


def _units(podsets: Sequence[PodSet]) -> list[list[PodSet]]:
    """The sets that have to go to one domain together, those with most pods first."""
    units: dict[object, list[PodSet]] = {}
    for podset in sorted(podsets, key=lambda item: (-item.pods, item)):
        units.setdefault(podset.ask.group or podset, []).append(podset)
    return list(units.values())


def _holds(term: Manifest, view: NodeView) -> bool:
    known = [item for item in term.get("matchExpressions") or () if item.get("operator") in _OPERATORS]
    return matches({"matchExpressions": known}, view.labels)


_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
