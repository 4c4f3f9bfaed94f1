"""Pod groups, as far as the gate before scheduling looks at them."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from kube import Key, Manifest, Object
from kube.elastic_quotas import ROOT_QUOTA
from queue_manager.domain.members.members import domain_of, foreign_queue
from queue_manager.domain.quotas.queue_tree import DEFAULT, amounts_of
from resources import Amounts, add, largest

ADMITTED = "Admitted"
"""The condition that says whether the group's queue let it in, and why not."""

PENDING, INQUEUE, RUNNING, UNKNOWN, COMPLETED = "Pending", "Inqueue", "Running", "Unknown", "Completed"

_ASKED = "requests."


@dataclass(frozen=True, slots=True)
class Group:
    """One pod group. ``told`` are reason and message of its Admitted condition while that is False."""

    key: Key
    uid: str
    queue: str
    phase: str = ""
    min_member: int = 0
    min_task_member: dict[str, int] = field(default_factory=dict)
    min_resources: Amounts = field(default_factory=dict)
    limits: Amounts = field(default_factory=dict)
    priority_class: str = ""
    created: str = ""
    told: tuple[str, str] | None = None

    @property
    def waits_at_gate(self) -> bool:
        return self.phase in ("", PENDING)


def read_group(item: Object) -> Group:
    """The group that ``item`` describes; what is missing there has its default."""
    spec = item.spec
    asked = amounts_of(spec.get("minResources"))
    return Group(
        key=item.key,
        uid=item.uid,
        queue=foreign_queue(item) or str(spec.get("queue") or DEFAULT),
        phase=str(item.status.get("phase") or ""),
        min_member=int(spec.get("minMember") or 0),
        min_task_member=dict(spec.get("minTaskMember") or {}),
        min_resources={name.removeprefix(_ASKED): amount for name, amount in asked.items() if not _is_other(name)},
        limits={name: amount for name, amount in asked.items() if name.startswith("limits.")},
        priority_class=str(spec.get("priorityClassName") or ""),
        created=item.created,
        told=_told(item.status),
    )


def in_quota(group: Group, named: str) -> Group:
    """The group, in the elastic quota that its pods name (``named``): that wins over the Volcano queue of their PodGroup."""
    return replace(group, queue=named) if domain_of(named) == ROOT_QUOTA and not domain_of(group.queue) else group


def _is_other(name: str) -> bool:
    """Whether ``name`` of a minResources is no amount that is asked of nodes: limits, numbers of objects."""
    return name.startswith(("limits.", "count/")) or name == "pods"


def _told(status: Manifest) -> tuple[str, str] | None:
    for condition in status.get("conditions") or ():
        if condition.get("type") == ADMITTED and condition.get("status") == "False":
            return str(condition.get("reason") or ""), str(condition.get("message") or "")
    return None


def minimum(group: Group, members: Iterable[tuple[str, Amounts]]) -> Amounts:
    """What the group needs at the least to start: its minResources, else what its smallest members (role, request) need.

    Resource by resource, and only of the members that exist, so the true minimum is never less than this.
    """
    if group.min_resources:
        return group.min_resources
    known = list(members)
    least = _smallest([request for _, request in known], group.min_member)
    roles: Amounts = {}
    for role, count in group.min_task_member.items():
        roles = add(roles, _smallest([request for name, request in known if name == role], count))
    return largest(least, roles)


def _smallest(requests: list[Amounts], count: int) -> Amounts:
    """The sum of the ``count`` smallest amounts of each resource."""
    if requests and requests.count(requests[0]) == len(requests):
        return {name: min(count, len(requests)) * amount for name, amount in sorted(requests[0].items())}
    total: Amounts = {}
    for name in sorted({name for request in requests for name in request}):
        total[name] = sum(sorted(request.get(name, 0) for request in requests)[:count])
    return total
