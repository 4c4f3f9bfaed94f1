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

    def obstacle(self, pod: Object) -> str:
        """The budget that forbids to take ``pod`` away now, in words; empty where none does.

        A pod that does not serve costs a budget nothing that is met without it.
        """
        for budget in self._of(pod):
            healthy, desired = self._healthy(budget), int(budget.status.get("desiredHealthy") or 0)
            # A status follows its pods after a while: no more goes than its pods allow now.
            allowed = min(int(budget.status.get("disruptionsAllowed") or 0), healthy - desired)
            if allowed < 1 if serves(pod) else healthy < desired:
                return (
                    f"budget {budget.namespace}/{budget.name} allows no disruption: "
                    f"{healthy} of its pods are healthy, {desired} have to be"
                )
        return ""

    def _of(self, pod: Object) -> list[Object]:
        found = [item for item in self.store.in_namespace(BUDGET, pod.namespace) if _selects(item, pod)]
        return sorted(found, key=lambda item: item.key)

    def _healthy(self, budget: Object) -> int:
        return sum(
            serves(pod) and pod.key not in self.spent and _selects(budget, pod)
            for pod in self.store.in_namespace(POD, budget.namespace)
        )


def _selects(budget: Object, pod: Object) -> bool:
    try:
        return matches(budget.spec.get("selector"), pod.labels)
    except SelectorError:
        return False
