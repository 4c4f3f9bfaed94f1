"""PodDisruptionBudgets: whether one more pod may be taken away."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from descheduler.domain.cluster.pod_traits import POD
from descheduler.domain.cluster.workloads import serves
from kube import Event, Key, Object, Store
from kube.selectors import SelectorError, matches

BUDGET = "PodDisruptionBudget.policy"


@dataclass(slots=True)
class ServingPods:
    """Which pods of each budget serve: found once for a budget that is asked about, then kept up to date pod by pod."""

    store: Store = field(default_factory=Store)
    _known: dict[Key, set[Key]] = field(default_factory=dict)

    def fold(self, run: Sequence[Event]) -> None:
        """Pods or budgets came, changed or went alike."""
        kind, namespace, _ = run[0].key
        if kind == BUDGET:
            for event in run:
                self._known.pop(event.key, None)
            return
        for key, pods in self._known.items():
            if key.namespace == namespace:
                pods.difference_update(event.key for event in run)
                pods.update(event.key for event in run if event.new is not None and self._counts(key, event.new))

    def of(self, budget: Key) -> set[Key]:
        """Never to be changed."""
        found = self._known.get(budget)
        if found is None:
            found = self._known[budget] = self._found(budget)
        return found

    def check(self) -> list[str]:
        """Whether what is known is what the facts say."""
        return [f"pods of {key} are out of date" for key, pods in self._known.items() if pods != self._found(key)]

    def _found(self, budget: Key) -> set[Key]:
        pods = self.store.in_namespace(POD, budget.namespace)
        return {pod.key for pod in pods if self._counts(budget, pod)}

    def _counts(self, budget: Key, pod: Object) -> bool:
        item = self.store.get(budget)
        return item is not None and serves(pod) and _selects(item, pod)


@dataclass(slots=True)
class Budgets:
    """``spent`` are pods that are as good as gone: evicted in decisions of which the facts do not tell yet."""

    store: Store
    serving: ServingPods
    spent: dict[Key, None] = field(default_factory=dict)

    def obstacle(self, pod: Object) -> str:
        """The budget that forbids to take ``pod`` away now, in words; empty where none does.

        A pod that does not serve costs a budget nothing that is met without it.
        """
        for budget in self._of(pod):
            serving, desired = self.serving.of(budget.key), int(budget.status.get("desiredHealthy") or 0)
            gone = len(serving & self.spent.keys())
            healthy = len(serving) - gone
            # A status follows its pods after a while: no more goes than it says, nor than its pods allow now.
            allowed = min(int(budget.status.get("disruptionsAllowed") or 0) - gone, healthy - desired)
            if allowed < 1 if serves(pod) else healthy < desired:
                return (
                    f"budget {budget.namespace}/{budget.name} allows no disruption: "
                    f"{healthy} of its pods are healthy, {desired} have to be"
                )
        return ""

    def _of(self, pod: Object) -> list[Object]:
        found = [item for item in self.store.in_namespace(BUDGET, pod.namespace) if _selects(item, pod)]
        return sorted(found, key=lambda item: item.key)


def _selects(budget: Object, pod: Object) -> bool:
    try:
        return matches(budget.spec.get("selector"), pod.labels)
    except SelectorError:
        return False
