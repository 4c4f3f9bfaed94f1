"""The gate before scheduling: which waiting groups may compete for room, and why the others may not.

A group is let in when its queue exists, is open and a leaf, when its minimum is not more than the queue or one of its
ancestors may ever have, and when the ResourceQuota of its namespace allows it; with an overcommit factor also only while
what is used and let in fits the cluster times the factor. Who is refused stops nobody behind.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from kube import Key
from queue_manager.domain.members.demand import Demand
from queue_manager.domain.members.groups import Group, minimum
from queue_manager.domain.members.members import Place, domain_of
from queue_manager.domain.members.quota import Quota, pod_of, shortage
from queue_manager.domain.quotas.queue_tree import QueueTree
from queue_manager.domain.quotas.sums import accumulate
from resources import Amounts
from resources.amounts import format_amount


class HoldReason(StrEnum):
    """Why a group waits at the gate."""

    QUEUE_MISSING = "QueueMissing"
    QUEUE_CLOSED = "QueueClosed"
    QUEUE_NOT_LEAF = "QueueNotLeaf"
    NEVER_FITS = "NeverFits"
    QUOTA_EXCEEDED = "QuotaExceeded"
    CLUSTER_FULL = "ClusterFull"


@dataclass(frozen=True, slots=True)
class Hold:
    """A refusal for now: the reason, and the sentence with queue or quota, need and have."""

    reason: HoldReason
    message: str


@dataclass(slots=True)
class Room:
    """What the overcommit gate may still let in, by resource; None when there is no such gate."""

    left: Amounts | None = None
    total: Amounts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gate:
    """Judges groups against the state. ``tree_of`` finds the tree that a queue belongs in, ``let_in`` says whether a group
    passed already, ``quotas`` lists a namespace's."""

    tree_of: Callable[[str], QueueTree]
    demand: Demand
    quotas: Callable[[str], Sequence[Quota]]
    let_in: Callable[[Group], bool]

    def judge(self, group: Group, room: Room) -> Hold | None:
        """Why ``group`` may not compete yet; None lets it in and takes its minimum from ``room``."""
        need = self.minimum(group)
        hold = self._queue(group) or self._capability(group, need) or self._quota(group, need) or _full(need, room)
        if hold is None and room.left is not None:
            accumulate(room.left, need, -1)
        return hold

    def minimum(self, group: Group) -> Amounts:
        """What the group needs at the least, as far as its spec or its pods say."""
        tally = self.demand.tallies.get(group.key)
        members = ((member.role, member.request) for member in tally.members.values()) if tally else ()
        return minimum(group, members)

    def _queue(self, group: Group) -> Hold | None:
        tree = self.tree_of(group.queue)
        queue = tree.queues.get(group.queue)
        if queue is None:
            return Hold(HoldReason.QUEUE_MISSING, f"{title(group.queue)} does not exist")
        if not queue.is_open:
            return Hold(HoldReason.QUEUE_CLOSED, f"queue {group.queue} is {queue.state} and takes no new work")
        if not tree.is_leaf(group.queue):
            below = ", ".join(tree.children_of(group.queue)[:3])
            message = f"{title(group.queue)} is no leaf; work belongs in a queue below it ({below})"
            return Hold(HoldReason.QUEUE_NOT_LEAF, message)
        return None

    def _capability(self, group: Group, need: Amounts) -> Hold | None:
        tree = self.tree_of(group.queue)
        for name in tree.line_of(group.queue):
            capability = tree.queues[name].capability
            for resource in sorted(need):
                if resource in capability and need[resource] > capability[resource]:
                    asked, cap = format_amount(resource, need[resource]), format_amount(resource, capability[resource])
                    return Hold(
                        HoldReason.NEVER_FITS,
                        f"can never fit: its minimum needs {resource} {asked}, {title(name)} may have at most {cap}",
                    )
        return None

    def _quota(self, group: Group, need: Amounts) -> Hold | None:
        for quota in self.quotas(group.key.namespace):
            if quota.scopes is not None and not self._is_about(quota, group):
                continue
            used, pods = self._used_in(group) if quota.scopes is None else self._used_of(quota, group)
            short = shortage(quota, group, need, used, pods)
            if short is not None:
                text = _quota_message(quota, short.resource, short.need, short.used, short.limit)
                return Hold(HoldReason.QUOTA_EXCEEDED, text)
        return None

    def _is_about(self, quota: Quota, group: Group) -> bool:
        """Whether the scopes of the quota take in any pod of the group, or such as it will have."""
        tally = self.demand.tallies.get(group.key)
        specs = [member.spec for member in tally.members.values()] if tally is not None else []
        return any(quota.tracks(spec) for spec in specs or [pod_of(group)])

    def _used_of(self, quota: Quota, waiting: Group) -> tuple[Amounts, int]:
        """What the pods in the scopes of the quota count for without those of ``waiting``, and how many they are."""
        used: Amounts = {}
        pods = 0
        for tally in self.demand.in_namespace(waiting.key.namespace):
            group = self.demand.groups.get(tally.key)
            inside = group is not None and self.let_in(group)
            if tally.key == waiting.key or not (tally.is_bare or inside):
                continue
            tracked = [each for each in tally.members.values() if quota.tracks(each.spec)]
            for member in tracked:
                if member.place is not Place.IDLE:
                    accumulate(used, member.request, 1)
                    pods += 1
            if group is not None and (tracked or (not tally.members and quota.tracks(pod_of(group)))):
                accumulate(used, group.limits, 1)
                if not tally.members:
                    accumulate(used, group.min_resources, 1)
                    pods += group.min_member
        return used, pods

    def _used_in(self, waiting: Group) -> tuple[Amounts, int]:
        """What the namespace of ``waiting`` counts for without it, and how many pods that is."""
        used: Amounts = {}
        pods = 0
        for tally in self.demand.in_namespace(waiting.key.namespace):
            if tally.key == waiting.key:
                continue
            group = self.demand.groups.get(tally.key)
            inside = group is not None and self.let_in(group)
            if tally.is_bare or inside:
                accumulate(used, self.demand.holds(tally.key, inside), 1)
                pods += max(tally.live, group.min_member if group and not tally.members else 0)
            if group is not None and inside:
                accumulate(used, group.limits, 1)
        return used, pods


def _full(need: Amounts, room: Room) -> Hold | None:
    if room.left is None:
        return None
    for resource in sorted(need):
        if need[resource] > max(0, room.left.get(resource, 0)):
            asked = format_amount(resource, need[resource])
            left = format_amount(resource, max(0, room.left.get(resource, 0)))
            total = format_amount(resource, room.total.get(resource, 0))
            return Hold(
                HoldReason.CLUSTER_FULL,
                f"the enqueue gate has room for {resource} {left} of {total}, the group's minimum needs {asked}",
            )
    return None


def _quota_message(quota: Quota, resource: str, need: int, used: int, limit: int) -> str:
    have = format_amount(resource, max(0, limit - used))
    return (
        f"quota {quota.name} of namespace {quota.namespace}: needs {resource} {format_amount(resource, need)}, "
        f"has {have} ({format_amount(resource, used)} of {format_amount(resource, limit)} used)"
    )


def open_room(supply: Amounts, factor_milli: int, demand: Demand, inside: Iterable[Group]) -> Room:
    """What the overcommit gate leaves: supply × factor, less what is bound and what the groups ``inside`` still need."""
    if not factor_milli:
        return Room()
    total = {name: amount * factor_milli // 1000 for name, amount in supply.items()}
    left = dict(total)
    for totals in demand.totals.values():
        accumulate(left, totals.allocated, -1)
    for group in inside:
        accumulate(left, demand.reserved(group), -1)
    return Room(left, total)


def title(queue: str) -> str:
    """What people call a queue or quota: ``queue a``, ``quota b``."""
    return queue.replace("/", " ", 1) if domain_of(queue) else f"queue {queue}"


def gate_order(
    tree_of: Callable[[str], QueueTree], priorities: dict[str, int]
) -> Callable[[Group], tuple[int, int, str, Key]]:
    """The sort key by which groups come to the gate: queue priority, own priority, creation, name."""

    def key(group: Group) -> tuple[int, int, str, Key]:
        queue = tree_of(group.queue).queues.get(group.queue)
        return -(queue.priority if queue else 0), -priorities.get(group.priority_class, 0), group.created, group.key

    return key
