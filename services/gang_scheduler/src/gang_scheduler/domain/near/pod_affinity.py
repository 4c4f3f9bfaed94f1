"""Which pods are where, as far as other pods care: counted node by node for every set of pods that somebody names."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from gang_scheduler.domain.columns.vectors import Ints, Mask
from gang_scheduler.domain.near.domain_counts import Census, DomainCounts
from gang_scheduler.domain.nodes.node_table import NodeTable
from gang_scheduler.domain.pods.pod_record import PodRecord
from gang_scheduler.domain.score.scoring import FULL, NEIGHBOURS
from gang_scheduler.domain.terms.pod_terms import Labels, Neighbourhood, PodTerm, PodTerms

Item = TypeVar("Item")


@dataclass(slots=True)
class NeighbourIndex:
    """The census of every set of pods, and on which nodes pods are that keep others away."""

    table: NodeTable
    namespaces: dict[str, Labels] = field(default_factory=dict)
    sets: dict[PodTerm, Census] = field(default_factory=dict)
    keepers: dict[Neighbourhood, Census] = field(default_factory=dict)
    """For each anti-affinity how many pods that have it are on each node."""

    version: int = 0
    """Counts the changes of the sets themselves."""

    _made: int = 0
    _domains: dict[tuple[int, ...], dict[str, DomainCounts]] = field(default_factory=dict)

    @property
    def active(self) -> bool:
        """Whether any pod cares about others at all."""
        return bool(self.sets)

    def watch(self, terms: PodTerms, placed: Callable[[], Iterable[PodRecord]]) -> None:
        """A pod with ``terms`` exists now; ``placed`` tells all pods that have a node, and is asked for a new set only."""
        new = [term for term in terms.terms() if self._use(self.sets, term)]
        for item in terms.apart:
            self._use(self.keepers, item)
        if new:
            self.version += 1
            for record in placed():
                for term in new:
                    if term.matches(record.key.namespace, record.pod.labels, self.namespaces):
                        self.sets[term].move(record.slot, 1)

    def leave(self, terms: PodTerms) -> None:
        """A pod with ``terms`` is gone."""
        dropped = [term for term in terms.terms() if self._drop(self.sets, term)]
        for item in terms.apart:
            self._drop(self.keepers, item)
        self.version += bool(dropped)

    def recount(self, placed: Iterable[PodRecord]) -> None:
        """Count everything again: labels of a namespace changed."""
        self.version += 1
        for census in (*self.sets.values(), *self.keepers.values()):
            census.clear()
        for record in placed:
            self.move(record, record.slot, 1)

    def matched(self, record: PodRecord) -> tuple[int, ...]:
        """The numbers of the sets to which a pod belongs: pods of one shape that agree in them are alike to everybody."""
        if record.matched_version != self.version:
            namespace, labels = record.key.namespace, record.pod.labels
            record.matched = tuple(
                census.number for term, census in self.sets.items() if term.matches(namespace, labels, self.namespaces)
            )
            record.matched_version = self.version
        return record.matched

    def move(self, record: PodRecord, slot: int, count: int) -> None:
        """A pod comes to the node at ``slot`` (1) or leaves it (-1)."""
        matched = self.matched(record)
        if matched:
            for census in self.sets.values():
                if census.number in matched:
                    census.move(slot, count)
        for item in record.shape.terms.apart:
            census_of_keepers = self.keepers.get(item)
            if census_of_keepers is not None:
                census_of_keepers.move(slot, count)

    def repelled_by(self, record: PodRecord) -> Iterator[Neighbourhood]:
        """The anti-affinities of pods on nodes that are meant for this pod."""
        if not self.keepers:
            return
        matched = self.matched(record)
        for item, census in self.keepers.items():
            if self.sets[item.term].number in matched and census.counts.any():
                yield item

    def in_domains(self, counts: Ints, topology_key: str) -> Ints:
        """For each node the sum of ``counts`` over its domain; 0 where the node lacks the label."""
        domains = self.table.labels.column(topology_key)
        sums = np.bincount(domains, weights=counts).astype(np.int64)
        sums[0] = 0
        return sums[domains]

    def around(self, item: Neighbourhood) -> DomainCounts:
        """The pods of a set by domain."""
        return self._counted(self.sets[item.term], (), item.topology_key, None)

    def eligible_around(
        self, term: PodTerm, topology_key: str, who: tuple[int, int], eligibility: Callable[[], Mask]
    ) -> DomainCounts:
        """The same on eligible nodes only, as one constraint of one shape of pod (``who``) asks for."""
        return self._counted(self.sets[term], who, topology_key, eligibility)

    def _counted(
        self, census: Census, who: tuple[int, ...], topology_key: str, eligibility: Callable[[], Mask] | None
    ) -> DomainCounts:
        known = self._domains.setdefault((census.number, *who), {})
        counts = known.get(topology_key)
        if counts is None:
            counts = known[topology_key] = DomainCounts(self.table, census, topology_key, eligibility)
        return counts.sync()

    def masks(self, record: PodRecord) -> Iterator[tuple[str, Mask]]:
        """Every required affinity and anti-affinity with the nodes that satisfy it."""
        terms = record.shape.terms
        alone = terms.near and self._is_first(record)
        for item in terms.near:
            near = self.table.labels.column(item.topology_key) != 0 if alone else self.around(item).occupied()
            yield f"have no pod with {item.term} in their {item.topology_key} (pod affinity)", near
        for item in terms.apart:
            free = ~self.around(item).occupied()
            yield f"have a pod with {item.term} in their {item.topology_key} (pod anti-affinity)", free
        for item in self.repelled_by(record):
            free = ~self._counted(self.keepers[item], (), item.topology_key, None).occupied()
            yield f"have a pod in their {item.topology_key} that keeps pods with {item.term} away", free

    def bonus(self, record: PodRecord) -> Ints | int:
        """The score of preferred affinity and anti-affinity on each node."""
        preferred = record.shape.terms.preferred
        if not preferred:
            return 0
        total = np.zeros(self.table.size, np.int64)
        for item in preferred:
            total += item.weight * self.around(item).on_nodes()
        return total * (NEIGHBOURS * FULL) // max(1, int(np.abs(total).max()))

    def _is_first(self, record: PodRecord) -> bool:
        """Whether nobody is there yet whom the pod wants near, and it is such a pod itself: then it may go anywhere."""
        matched = self.matched(record)
        return all(
            self.sets[item.term].number in matched and not self.sets[item.term].counts.any()
            for item in record.shape.terms.near
        )

    def _use(self, index: dict[Item, Census], item: Item) -> bool:
        census = index.get(item)
        if census is None:
            self._made += 1
            census = index[item] = Census(self._made, np.zeros(self.table.size, np.int64))
        census.users += 1
        return census.users == 1

    def _drop(self, index: dict[Item, Census], item: Item) -> bool:
        census = index[item]
        census.users -= 1
        if census.users == 0:
            del index[item]
            for who in [who for who in self._domains if who[0] == census.number]:
                del self._domains[who]
        return census.users == 0
