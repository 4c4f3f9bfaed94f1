"""ResourceQuota: how much of each limit is used in its namespace."""

from cluster_gateway.domain.controllers.work import Work
from kube import Event, Key, Manifest, Object, Store
from kube.kinds import KINDS
from kube.pods import is_finished
from kube.resource_quotas import counts_of, is_scoped, tracks
from resources import Amounts, QuantityError, format_amounts, parse_amounts

NAMESPACED = tuple(kind for kind, info in KINDS.items() if info.namespaced)


class QuotaUse:
    """What is used of each quota, kept up to date object by object, as a namespace may have very many.

    What is counted is what the store has, whichever of its changes is heard of first.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._counted: dict[str, dict[Key, dict[Key, Amounts]]] = {}
        """By namespace and quota what every object counts for."""
        self._used: dict[Key, Amounts] = {}

    def fold_quota(self, event: Event) -> None:
        """A quota came, went, or limits something else."""
        old, new = event.old, event.new
        quotas = self._counted.setdefault(event.key.namespace, {})
        if new is None:
            quotas.pop(event.key, None)
            self._used.pop(event.key, None)
            return
        if old is not None and event.key in quotas and old.spec == new.spec:
            return
        quotas[event.key], self._used[event.key] = {}, {}
        for kind in NAMESPACED:
            for item in self._store.in_namespace(kind, event.key.namespace):
                self._count(event.key, item.key)

    def has_quotas(self, namespace: str) -> bool:
        """Whether any quota is there that could count an object of ``namespace``."""
        return bool(self._counted.get(namespace))

    def fold(self, event: Event) -> list[Key]:
        """An object changed: the quotas of which another amount is used now."""
        old, new = event.old, event.new
        if old is not None and new is not None and old.body is new.body and is_finished(old) == is_finished(new):
            return []
        return [quota for quota in self._counted.get(event.key.namespace, ()) if self._count(quota, event.key)]

    def of(self, quota: Key) -> Amounts:
        """What is used, by the names that the quota may limit."""
        return self._used.get(quota, {})

    def _count(self, quota: Key, key: Key) -> bool:
        item, rule = self._store.get(key), self._store.get(quota)
        after = _counts(item, rule.spec) if item is not None and rule is not None else {}
        counted, used = self._counted[quota.namespace][quota], self._used[quota]
        before = counted.pop(key, {})
        if after:
            counted[key] = after
        for name in {**before, **after}:
            used[name] = used.get(name, 0) + after.get(name, 0) - before.get(name, 0)
        return before != after


def reconcile_quota(item: Object, used: Amounts, work: Work) -> None:
    """Write the limits as they are in force, and what is ``used`` of each."""
    hard = _hard(item.spec)
    shown = format_amounts(dict(sorted(hard.items())))
    work.status(item, {"hard": shown, "used": format_amounts({name: used.get(name, 0) for name in sorted(hard)})})


def _counts(item: Object, quota: Manifest) -> Amounts:
    """What ``item`` counts for of what the quota limits; one with scopes is about pods alone."""
    if is_scoped(quota) and (item.kind != "Pod" or not tracks(quota, item.spec)):
        return {}
    hard = quota.get("hard") or {}
    return {name: amount for name, amount in counts_of(item).items() if name in hard and amount}


def _hard(spec: Manifest) -> Amounts:
    """The limits; none where they make no sense."""
    try:
        return parse_amounts(spec.get("hard"))
    except (QuantityError, AttributeError, TypeError):
        return {}
