"""ResourceQuota of a namespace against the groups that may be let in there."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kube import Object
from queue_manager.domain.gates.groups import Group
from queue_manager.domain.shares.queue_tree import amounts_of
from resources import Amounts

RESOURCE_QUOTA = "ResourceQuota"
_PLAIN = ("cpu", "memory", "ephemeral-storage")
_PODS = ("pods", "count/pods")


@dataclass(frozen=True, slots=True)
class Quota:
    """The hard limits of one ResourceQuota, by the names in its spec."""

    namespace: str
    name: str
    hard: Amounts


@dataclass(frozen=True, slots=True)
class Shortage:
    """One limit that does not allow what is asked: ``need`` and ``used`` beside ``limit``, of ``resource``."""

    quota: Quota
    resource: str
    need: int
    used: int
    limit: int


def read_quota(item: Object) -> Quota | None:
    """The quota of ``item``; None for one with scopes, which is about single pods and not about groups."""
    spec = item.spec
    if spec.get("scopes") or spec.get("scopeSelector"):
        return None
    return Quota(item.namespace, item.name, amounts_of(spec.get("hard")))


def shortage(quotas: Iterable[Quota], group: Group, need: Amounts, used: Amounts, pods: int) -> Shortage | None:
    """The first limit, by quota and resource, that letting ``group`` in would break.

    ``need`` is its minimum, ``used`` what the namespace's pods and groups count for already, ``pods`` how many they are.
    Only what the group asks for is looked at.
    """
    for quota in quotas:
        for resource, asked, taken in _asked(quota, group, need, used, pods):
            if asked > 0 and asked + taken > quota.hard[resource]:
                return Shortage(quota, resource, asked, taken, quota.hard[resource])
    return None


def _asked(quota: Quota, group: Group, need: Amounts, used: Amounts, pods: int) -> Iterator[tuple[str, int, int]]:
    for name in sorted(quota.hard):
        plain = name.removeprefix("requests.")
        if name in _PODS:
            yield name, group.min_member, pods
        elif name.startswith("limits."):
            yield name, group.limits.get(name, 0), used.get(name, 0)
        elif plain != name or name in _PLAIN:
            yield name, need.get(plain, 0), used.get(plain, 0)
