"""Which nodes a pod may go to whatever runs there: existence, taints, node selector, node affinity; a vector each."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from gang_scheduler.domain.columns.vectors import ALL, Mask, Slots
from gang_scheduler.domain.nodes.node_table import NOT_READY, UNSCHEDULABLE, NodeTable
from gang_scheduler.domain.terms.node_rules import NODE_GROUP, NodeRules, NodeTerm
from gang_scheduler.domain.terms.selectors import Conjunction, Requirement

BLOCKING = ("NoSchedule", "NoExecute")
MOST_MASKS = 256
"""So many masks are kept."""


def static_mask(rules: NodeRules, table: NodeTable, slots: Slots = ALL) -> Mask:
    """For each of ``slots`` whether a node is there and its taints and labels allow the pod."""
    mask = table.exists[slots] & _tolerated(rules, table, slots)
    if rules.selector or rules.required is not None:
        mask &= affinity_mask(rules, table, slots)
    return mask


def sieve(counts: list[tuple[str, int]], phrase: str, left: Mask, mask: Mask) -> None:
    """Take out of ``left`` what ``mask`` does not pass, and note how many that were."""
    out = int(np.count_nonzero(left > mask))
    if out:
        counts.append((phrase, out))
        left &= mask


Failing = tuple[tuple[str, int], ...]
"""Rules in words, and how many nodes fail first at each."""


@dataclass(slots=True)
class StaticMasks:
    """``static_mask`` of all nodes by rules, kept until a node changes; and for those who ask, what fails at it."""

    table: NodeTable
    _masks: dict[NodeRules, Mask] = field(default_factory=dict)
    _failing: dict[NodeRules, Failing] = field(default_factory=dict)
    _seen: int = -1

    def of(self, rules: NodeRules) -> Mask:
        """The mask of ``rules``, to be read only."""
        self._forget()
        mask = self._masks.get(rules)
        if mask is None:
            mask = self._masks[rules] = static_mask(rules, self.table)
        return mask

    def failing(self, rules: NodeRules) -> Failing:
        """How many nodes fail first at which of ``static_filters``; the others pass."""
        self._forget()
        found = self._failing.get(rules)
        if found is None:
            counts, left = list[tuple[str, int]](), self.table.exists.copy()
            for phrase, mask in static_filters(rules, self.table):
                sieve(counts, phrase, left, mask)
            found = self._failing[rules] = tuple(counts)
        return found

    def _forget(self) -> None:
        if self._seen != self.table.rules.end or len(self._masks) + len(self._failing) >= MOST_MASKS:
            self._masks, self._failing, self._seen = {}, {}, self.table.rules.end


def affinity_mask(rules: NodeRules, table: NodeTable, slots: Slots = ALL) -> Mask:
    """Whether nodeSelector and required node affinity hold."""
    mask = conjunction_mask(rules.selector, table, slots)
    if rules.required is not None:
        mask &= _any_term(rules.required, table, slots)
    return mask


def taints_mask(rules: NodeRules, table: NodeTable, slots: Slots = ALL) -> Mask:
    """Whether the pod tolerates all taints that keep pods away."""
    return _tolerated(rules, table, slots)


def conjunction_mask(conditions: Conjunction, table: NodeTable, slots: Slots) -> Mask:
    """Whether all ``conditions`` hold for the labels."""
    mask = np.ones(len(table.exists[slots]), np.bool_)
    for condition in conditions:
        mask &= condition.mask(table.labels, slots)
    return mask


def term_mask(term: NodeTerm, table: NodeTable, slots: Slots) -> Mask:
    """Whether one node selector term holds; an empty one holds nowhere, as in Kubernetes."""
    if not term.labels and not term.fields:
        return np.zeros(len(table.exists[slots]), np.bool_)
    mask = conjunction_mask(term.labels, table, slots)
    for condition in term.fields:
        mask &= _name_mask(condition, table, slots)
    return mask


def static_filters(rules: NodeRules, table: NodeTable) -> Iterator[tuple[str, Mask]]:
    """Each static rule with the nodes that pass it, in the order in which they are told to people."""
    for taint in (UNSCHEDULABLE, NOT_READY):
        if rules.untolerated((taint,)):
            word = "are cordoned" if taint is UNSCHEDULABLE else "are not ready"
            yield word, ~_having(table, lambda taints, wanted=taint: wanted in taints)
    for condition in rules.selector:
        words = f"lack the label {condition} of the node selector"
        if condition.key == NODE_GROUP:
            words = f"are in no node group that its queue may use ({condition})"
        yield words, condition.mask(table.labels, ALL)
    if rules.required is not None:
        wanted = " or ".join(str(term) for term in rules.required)
        yield f"do not match the node affinity {wanted}", _any_term(rules.required, table, ALL)
    for taints in table.taint_sets:
        blocking = [taint for taint in rules.untolerated(taints) if taint.effect in BLOCKING]
        if blocking:
            yield f"have the taint {blocking[0]}", ~_having(table, lambda found, wanted=taints: found == wanted)


def _any_term(terms: tuple[NodeTerm, ...], table: NodeTable, slots: Slots) -> Mask:
    mask = np.zeros(len(table.exists[slots]), np.bool_)
    for term in terms:
        mask |= term_mask(term, table, slots)
    return mask


def _name_mask(condition: Requirement, table: NodeTable, slots: Slots) -> Mask:
    named = np.zeros(table.size, np.bool_)
    named[[table.slots[name] for name in condition.values if name in table.slots]] = condition.key == "metadata.name"
    return named[slots] if condition.operator == "In" else ~named[slots]


def _tolerated(rules: NodeRules, table: NodeTable, slots: Slots) -> Mask:
    if len(table.taint_sets) == 1:
        return np.ones(len(table.exists[slots]), np.bool_)
    return ~_having(table, lambda taints: any(taint.effect in BLOCKING for taint in rules.untolerated(taints)), slots)


def _having(table: NodeTable, test: Callable[..., bool], slots: Slots = ALL) -> Mask:
    """The nodes whose set of taints passes ``test``, which is asked once for each distinct set."""
    verdicts = np.array([test(taints) for taints in table.taint_sets], np.bool_)
    return verdicts[table.taint_ids[slots]]
