"""Disruption budgets at the moment of an eviction, as the Eviction API of Kubernetes looks at them.

``gang_scheduler`` weighs budgets itself, as a preemptor: it may break one where nothing else helps. Nobody else may.
"""

from cluster_gateway.domain.controllers.disruption_budget import BUDGET, selects
from cluster_gateway.domain.controllers.made_pods import is_active
from kube import Object, Store
from kube.pods import is_ready
from kube.words import counted, verb

MAY_BREAK = frozenset(("gang_scheduler",))


def budget_refusal(store: Store, pod: Object) -> str:
    """Why ``pod`` must not be taken away now; "" where it may. What is being deleted already counts as gone."""
    if not is_active(pod):
        return ""
    for budget in store.in_namespace(BUDGET, pod.namespace):
        if budget.deleting or not selects(budget, pod):
            continue
        there = store.in_namespace("Pod", pod.namespace)
        healthy = sum(is_active(one) and is_ready(one) and selects(budget, one) for one in there)
        needed = int(budget.status.get("desiredHealthy") or 0)
        if healthy - is_ready(pod) < needed:
            return (
                f"the disruption budget {budget.name} forbids it: {counted(healthy, 'pod')} {verb(healthy)} healthy, "
                f"{needed} {verb(needed, 'has', 'have')} to be"
            )
    return ""
