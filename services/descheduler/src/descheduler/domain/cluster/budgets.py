"""PodDisruptionBudgets: whether one more pod may be taken away."""

from dataclasses import dataclass, field

from descheduler.domain.cluster.pod_traits import POD
from descheduler.domain.cluster.workloads import serves
from kube import Key, Object, Store
from kube.selectors import SelectorError, matches

BUDGET = "PodDisruptionBudget.policy"


@dataclass(slots=True)
class Budgets:
    """``spent`` are pods that are as good as gone: evicted in decisions of which the facts do not tell yet."""

    store: Store
    spent: dict[Key, None] = field(default_factory=dict)
    _serving: dict[Key, set[Key]] = field(default_factory=dict)

    def obstacle(self, pod: Object) -> str:
        """The budget that forbids to take ``pod`` away now, in words; empty where none does.

        A pod that does not serve costs a budget nothing that is met without it.
        """
        for budget in self._of(pod):
            serving, desired = self._healthy(budget), int(budget.status.get("desiredHealthy") or 0)
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

    def _healthy(self, budget: Object) -> set[Key]:
        """Those of its pods that serve; found once, as nothing changes while a decision is thought about."""
        found = self._serving.get(budget.key)
        if found is None:
            pods = self.store.in_namespace(POD, budget.namespace)
            found = {pod.key for pod in pods if serves(pod) and _selects(budget, pod)}
            self._serving[budget.key] = found
        return found


def _selects(budget: Object, pod: Object) -> bool:
    try:
        return matches(budget.spec.get("selector"), pod.labels)
    except SelectorError:
        return False
