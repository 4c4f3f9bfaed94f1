"""Which Recommendations have to be looked at, and what comes of it."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from kube import Decision, Event, Key, Store
from slo_controller.domain.names import POD, RECOMMENDATION
from slo_controller.domain.prediction.past_use import PastUse
from slo_controller.domain.prediction.workloads import REPLICA_SET
from slo_controller.domain.recommending.recommender import Recommender, is_by_selector


@dataclass(slots=True)
class Advice:
    """Over the facts in ``store``."""

    store: Store
    _due: dict[Key, None] = field(default_factory=dict)

    def fold(self, run: Sequence[Event]) -> None:
        """Take in changes that are alike: of Recommendations, or of those who may be selected by one."""
        kind, namespace, _ = run[0].key
        if kind == RECOMMENDATION:
            self._due.update((event.key, None) for event in run)
        elif kind == REPLICA_SET or (kind == POD and _is_other(run[0])):
            for item in self.store.in_namespace(RECOMMENDATION, namespace):
                if is_by_selector(item):
                    self._due[item.key] = None

    def look_again(self, key: Key) -> None:
        """A decision about one of them has come to its outcome."""
        self._due[key] = None

    def learnt(self) -> None:
        """Something was learnt: all of them may say something else."""
        self._due.update(dict.fromkeys(self.store.of_kind(RECOMMENDATION)))

    def decide(self, past: PastUse, now: int, in_flight: AbstractSet[Key]) -> Iterator[Decision]:
        """What is to be written on those that have to be looked at."""
        due, self._due = self._due, {}
        recommender = Recommender(self.store)
        for key in sorted(due):
            item = self.store.get(key)
            if item is not None and not item.deleting and key not in in_flight:
                decision = recommender.decide(item, past, now)
                if decision is not None:
                    yield decision


def _is_other(event: Event) -> bool:
    """Whether a pod came, went, or got other labels."""
    old, new = event.old, event.new
    return old is None or new is None or old.labels != new.labels
