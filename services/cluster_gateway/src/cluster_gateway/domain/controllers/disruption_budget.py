"""PodDisruptionBudget: how many of its pods may be taken away now."""

from cluster_gateway.domain.controllers.made_pods import is_active
from cluster_gateway.domain.controllers.work import Work, share_of, whole, with_conditions
from kube import Event, Key, Manifest, Object, Store, kind_id, rfc3339
from kube.pods import is_finished, is_ready
from kube.selectors import SelectorError, matches
from kube.words import counted, verb

BUDGET = "PodDisruptionBudget.policy"


class BudgetMembers:
    """Which pods each budget selects, kept up to date pod by pod, as a namespace may have very many."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._members: dict[Key, dict[Key, None]] = {}
        self._budgets: dict[str, dict[Key, None]] = {}

    def fold_budget(self, event: Event) -> None:
        """A budget came, went, or selects other pods."""
        key = event.key
        if event.new is None:
            self._members.pop(key, None)
            self._budgets.get(key.namespace, {}).pop(key, None)
            return
        self._budgets.setdefault(key.namespace, {})[key] = None
        if event.old is None or event.old.spec.get("selector") != event.new.spec.get("selector"):
            pods = self._store.in_namespace("Pod", key.namespace)
            self._members[key] = {pod.key: None for pod in pods if selects(event.new, pod)}

    def has_budgets(self, namespace: str) -> bool:
        """Whether any budget is there that could select a pod of ``namespace``."""
        return bool(self._budgets.get(namespace))

    def fold_pod(self, event: Event) -> list[Key]:
        """A pod changed: the budgets that this concerns."""
        budgets = self._budgets.get(event.key.namespace)
        return [key for key in budgets if self._place(key, event)] if budgets else []

    def _place(self, budget: Key, event: Event) -> bool:
        item, members = self._store.get(budget), self._members.setdefault(budget, {})
        before = event.key in members
        after = item is not None and event.new is not None and selects(item, event.new)
        if after:
            members[event.key] = None
        else:
            members.pop(event.key, None)
        return before or after

    def of(self, budget: Key) -> list[Object]:
        """The pods that the budget selects, by name."""
        found = (self._store.get(key) for key in sorted(self._members.get(budget, ())))
        return [pod for pod in found if pod is not None and not is_finished(pod)]


def reconcile_budget(item: Object, pods: list[Object], work: Work) -> None:
    """Write the status for the budget's ``pods``."""
    if item.deleting:
        return
    expected, desired = _desired(item, pods, work.store)
    healthy = sum(is_active(pod) and is_ready(pod) for pod in pods)
    allowed = max(0, healthy - desired) if expected else 0
    work.status(
        item,
        {
            "expectedPods": expected,
            "desiredHealthy": desired,
            "currentHealthy": healthy,
            "disruptionsAllowed": allowed,
            "observedGeneration": whole(item.metadata.get("generation"), 1),
            "conditions": with_conditions(item.status, _condition(allowed, healthy, desired, work.now)),
        },
    )


def selects(budget: Object, pod: Object) -> bool:
    """Whether the budget is about the pod; one whose selector cannot be read is about none."""
    try:
        return matches(budget.spec.get("selector"), pod.labels)
    except SelectorError:
        return False


def _desired(item: Object, pods: list[Object], store: Store) -> tuple[int, int]:
    """How many pods there should be, and how many of them have to stay healthy."""
    least, most = item.spec.get("minAvailable"), item.spec.get("maxUnavailable")
    if most is not None:
        expected = _expected(pods, store)
        return expected, max(0, expected - share_of(most, expected, up=True))
    if isinstance(least, str):
        expected = _expected(pods, store)
        return expected, share_of(least, expected, up=True)
    return len(pods), whole(least, 1)


def _expected(pods: list[Object], store: Store) -> int:
    """The replicas of the pods' controllers; a pod without one stands for itself."""
    controllers: dict[str, int] = {}
    for pod in pods:
        owner = pod
        while (above := _controller(owner, store)) is not None and "replicas" in above.spec:
            owner = above
        controllers[owner.uid] = whole(owner.spec.get("replicas"), 1)
    return sum(controllers.values())


def _controller(item: Object, store: Store) -> Object | None:
    found: Manifest | None = item.controller
    if found is None:
        return None
    kind = kind_id(str(found.get("apiVersion") or ""), str(found.get("kind") or ""))
    owner = store.get(Key(kind, item.namespace, str(found.get("name") or "")))
    return owner if owner is not None and owner.uid == found.get("uid") else None


def _condition(allowed: int, healthy: int, desired: int, now: int) -> Manifest:
    return {
        "type": "DisruptionAllowed",
        "status": "True" if allowed else "False",
        "reason": "SufficientPods" if allowed else "InsufficientPods",
        "message": f"{counted(healthy, 'pod')} {verb(healthy)} healthy, {desired} {verb(desired, 'has', 'have')} to be",
        "lastTransitionTime": rfc3339(now),
    }
