"""ResourceQuota of a namespace against the groups that may be let in there."""

from collections.abc import Iterator
from dataclasses import dataclass

from kube import Manifest, Object
from kube.resource_quotas import is_scoped, tracks
from queue_manager.domain.members.groups import Group
from queue_manager.domain.quotas.queue_tree import amounts_of
from resources import Amounts

_PLAIN = ("cpu", "memory", "ephemeral-storage")
_PODS = ("pods", "count/pods")


@dataclass(frozen=True, slots=True)
class Quota:
    """The hard limits of one ResourceQuota, by the names in its spec; ``scopes`` is that spec where it is about some pods only."""

    namespace: str
    name: str
    hard: Amounts
    scopes: Manifest | None = None

    def tracks(self, pod: Manifest) -> bool:
        """Whether it is about a pod of spec ``pod``."""
        return self.scopes is None or tracks(self.scopes, pod)


@dataclass(frozen=True, slots=True)
class Shortage:
    """One limit that does not allow what is asked: ``need`` and ``used`` beside ``limit``, of ``resource``."""

    quota: Quota
    resource: str
    need: int
    used: int
    limit: int


def read_quota(item: Object) -> Quota:
    """The quota of ``item``."""
    spec = item.spec
    return Quota(item.namespace, item.name, amounts_of(spec.get("hard")), spec if is_scoped(spec) else None)


def pod_of(group: Group) -> Manifest:
    """The spec of a pod of the group as far as the group itself tells, for as long as it has none."""
    requests = {name: amount for name, amount in group.min_resources.items() if amount}
    return {"priorityClassName": group.priority_class, "containers": [{"resources": {"requests": requests}}]}


def shortage(quota: Quota, group: Group, need: Amounts, used: Amounts, pods: int) -> Shortage | None:
    """The first limit of the quota, by resource, that letting ``group`` in would break.

    ``need`` is its minimum, ``used`` what the namespace's pods and groups count for already, ``pods`` how many they are.
    Only what the group asks for is looked at.
    """
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
