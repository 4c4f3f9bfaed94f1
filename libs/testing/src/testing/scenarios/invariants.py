"""What must be so after every step of every scenario, without asking: the list "Always checked" of the format.

A ``Watch`` looks at the facts after each step, and once more between what the step says and what the system makes of it.
It remembers what it saw, so that it can tell a limit that was lowered under use from one that was overrun.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from kube import Key, Object, Store
from resources import Amounts, add
from resources.amounts import format_amount
from testing.scenarios.cards import given_twice
from testing.scenarios.gangs import GangWatch
from testing.scenarios.limits import Charge, Limit, charges_of, limits_of
from testing.scenarios.membership import node_of, owners_of, pods_of


@dataclass(slots=True)
class Tolerance:
    """One limit as it was seen last, and who was there already when it was lowered."""

    amounts: Amounts = field(default_factory=dict)
    _there_before: dict[str, frozenset[str]] = field(default_factory=dict)

    def lower(self, amounts: Amounts, there: frozenset[str]) -> None:
        """Take note of the limit as it is now; ``there`` are the uids of the pods that are charged to it."""
        for resource in amounts.keys() | self.amounts.keys():
            if resource not in self.amounts or amounts.get(resource, 0) < self.amounts[resource]:
                self._there_before[resource] = there
        self.amounts = amounts

    def excuses(self, resource: str) -> frozenset[str]:
        """The uids of the pods that were there when ``resource`` was limited to what it is now."""
        return self._there_before.get(resource, frozenset())


@dataclass(slots=True)
class Watch:
    """The invariants over one run."""

    _limits: dict[Key, Tolerance] = field(default_factory=dict)
    _nodes: dict[str, str] = field(default_factory=dict)
    """The node of every pod that was ever bound, by uid."""
    _pods: dict[str, Object] = field(default_factory=dict)
    _seeded: set[str] = field(default_factory=set)
    _deleted: set[Key] = field(default_factory=set)
    _gangs: GangWatch = field(default_factory=GangWatch)

    def seeded(self, pods: Iterable[Object]) -> None:
        """These pods were given as bound and running: where they stand is nobody's decision."""
        given = list(pods)
        self._seeded |= {pod.uid for pod in given}
        self._gangs.started_by(given)

    def deleted(self, key: Key) -> None:
        """The scenario deleted this object, and with it what it owns."""
        self._deleted.add(key)

    def see(self, store: Store) -> None:
        """Take note of what was lowered and what appeared, before the system reacts to it."""
        charges, limits = charges_of(store), limits_of(store)
        for limit in limits:
            there = frozenset(charge.uid for charge in limit.charged(charges))
            self._limits.setdefault(limit.key, Tolerance()).lower(limit.amounts, there)
        for key in self._limits.keys() - {limit.key for limit in limits}:
            del self._limits[key]

    def check(self, store: Store, evictions: Iterable[tuple[str, str]]) -> list[str]:
        """What does not hold now, in words."""
        self.see(store)
        evicted = set(evictions)
        charges = charges_of(store)
        found = [fault for limit in limits_of(store) for fault in self._overrun(limit, limit.charged(charges))]
        found += self._moved(store) + self._gangs.check(store, evicted) + self._lost(store, evicted)
        found += given_twice(store)
        self._pods = {pod.uid: pod for pod in pods_of(store)}
        return found

    def _overrun(self, limit: Limit, charges: list[Charge]) -> list[str]:
        used: Amounts = {}
        for charge in charges:
            used = add(used, charge.amounts)
        found = []
        for resource in sorted(filter(limit.speaks_of, used)):
            most = limit.amounts.get(resource, 0)
            excused = self._seeded | self._limits[limit.key].excuses(resource)
            late = [charge.pod for charge in charges if charge.amounts.get(resource) and charge.uid not in excused]
            if used[resource] > most and late:
                amounts = f"{format_amount(resource, used[resource])} {resource} of {format_amount(resource, most)}"
                found.append(f"{limit.title} is overrun: {amounts} used, by {', '.join(late[-3:])}")
        return found

    def _moved(self, store: Store) -> list[str]:
        found = []
        for pod in pods_of(store):
            node, before = node_of(pod), self._nodes.get(pod.uid, "")
            if before and node != before:
                found.append(f"pod {pod.name} is bound to {node or 'no node'} after it was bound to {before}")
            if node:
                self._nodes[pod.uid] = node
        return found

    def _lost(self, store: Store, evicted: set[tuple[str, str]]) -> list[str]:
        there = {pod.uid for pod in pods_of(store)}
        gone = [pod for uid, pod in self._pods.items() if uid not in there and not self._may_go(pod, store, evicted)]
        return [f"pod {pod.name} is gone, and nobody deleted or evicted it" for pod in gone]

    def _may_go(self, pod: Object, store: Store, evicted: set[tuple[str, str]]) -> bool:
        """A pod with an owner may be removed by it; one on a node that is gone goes with it; taints drive pods away."""
        around = {pod.key, Key("Namespace", "", pod.namespace), Key("Node", "", node_of(pod)), *owners_of(pod, store)}
        owned = bool(pod.metadata.get("ownerReferences"))
        node = store.get(Key("Node", "", node_of(pod)))
        taints = (node.spec.get("taints") or ()) if node else ()
        driven = any(taint.get("effect") == "NoExecute" for taint in taints)
        return owned or driven or (pod.namespace, pod.name) in evicted or not self._deleted.isdisjoint(around)
