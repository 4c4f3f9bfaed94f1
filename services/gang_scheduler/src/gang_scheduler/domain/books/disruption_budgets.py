"""Disruption budgets: how many of the pods that each selects may still be taken away."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from gang_scheduler.domain.pods.pod_record import PodRecord
from gang_scheduler.domain.terms.selectors import Conjunction, label_selector, matches_all
from kube import Event, Key

BUDGET = "PodDisruptionBudget.policy"


class Budget(NamedTuple):
    """One budget. ``selector`` None selects no pod, an empty one every pod of the namespace."""

    key: Key
    selector: Conjunction | None
    allowed: int
    disrupted: frozenset[str]
    """Pods whose eviction was counted already, by name."""

    def covers(self, record: PodRecord) -> bool:
        if record.key.namespace != self.key.namespace or self.selector is None:
            return False
        return record.key.name not in self.disrupted and matches_all(self.selector, record.pod.labels)


@dataclass(slots=True)
class DisruptionBudgets:
    """All budgets of the cluster. ``changed`` is set by every change, for whoever waits for one."""

    by_key: dict[Key, Budget] = field(default_factory=dict)
    changed: bool = False

    def fold(self, event: Event) -> None:
        """A budget came, changed or went."""
        self.changed = True
        self.by_key.pop(event.key, None)
        if event.new is not None:
            status = event.new.status
            allowed = int(status.get("disruptionsAllowed") or 0)
            disrupted = frozenset(status.get("disruptedPods") or ())
            self.by_key[event.key] = Budget(
                event.key, label_selector(event.new.spec.get("selector")), allowed, disrupted
            )

    def of(self, record: PodRecord) -> list[Budget]:
        """The budgets that cover a pod."""
        if not self.by_key:
            return []
        return [self.by_key[key] for key in sorted(self.by_key) if self.by_key[key].covers(record)]

    def broken_by(self, taken: Mapping[Key, int], spent: Mapping[Key, int]) -> int:
        """How many budgets do not allow to lose the pods ``taken`` from each, after ``spent`` of each was used."""
        return sum(
            count > 0 and count + spent.get(key, 0) > self.by_key[key].allowed
            for key, count in taken.items()
            if key in self.by_key
        )
