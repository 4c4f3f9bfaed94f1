"""Workloads of ClusterQueues: what they ask for and what they were given.

Workloads are bare pods, pod groups and batch Jobs that name a LocalQueue, and Workload objects that no job of ours is behind.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kube import Key, Manifest, Object
from kube.pods import is_finished
from queue_manager.domain.members.groups import ADMITTED, COMPLETED, PENDING, read_group
from queue_manager.domain.members.members import GROUP, LOCAL_QUEUE
from queue_manager.domain.quotas.grant import RESERVATION, SINCE, Admission, read_admission
from queue_manager.domain.workloads.account import FREE, Account
from queue_manager.domain.workloads.podset import PodSet, merged, podset_of
from queue_manager.domain.workloads.work_parts import WorkPart
from resources import Amounts

REVOKED = "tidegate.dev/revoked"
"""The annotation that says why the quota of a running workload is wanted back: its pods are to be evicted."""

PRIORITY_CLASS = "kueue.x-k8s.io/priority-class"
RESERVED = "QuotaReserved"
"""The condition of a pod that says whether it holds quota, and why not."""


class Constraints(NamedTuple):
    """What a pod itself says of its nodes, as far as it bears on the choice of a flavor; canonical JSON, "" for nothing."""

    text: str = ""

    @property
    def parts(self) -> tuple[dict[str, str], list[Manifest] | None, list[Manifest]]:
        """Node selector, required node selector terms (None for none), tolerations."""
        if not self.text:
            return {}, None, []
        selector, terms, tolerations = json.loads(self.text)
        return selector or {}, terms, tolerations or []


@dataclass(frozen=True, slots=True)
class Shape:
    """Workloads of one shape in one queue fare alike. Its hash is worked out once: shapes are looked up all the time."""

    priority: int
    requests: tuple[tuple[str, int], ...]
    constraints: Constraints
    podsets: tuple[PodSet, ...] = ()
    """Those that ask for a place in a topology."""
    sets: tuple[WorkPart, ...] = ()
    """Its parts, where they are judged one by one; ``requests`` are then all of them together."""
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        parts = (self.priority, self.requests, self.constraints, self.podsets, self.sets)
        object.__setattr__(self, "_hash", hash(parts))

    def __hash__(self) -> int:
        return self._hash

    def podsets_of(self, counts: Sequence[int]) -> tuple[PodSet, ...]:
        """The pod sets where its parts have these numbers of pods: work of one part may start with fewer than it has."""
        if len(counts) != 1 or len(self.podsets) != 1:
            return self.podsets
        return (self.podsets[0]._replace(pods=counts[0]),)


class Workload(NamedTuple):
    """One pod or group. ``admission`` is what the facts say that it holds; ``told`` reason and message of why it waits."""

    key: Key
    uid: str
    local_queue: str
    shape: Shape
    created: str
    size: int = 1
    """How many pods it is of."""
    ready: bool = True
    """Whether it can be judged: a group that says nothing of its needs is known only when its pods are there."""
    over: bool = False
    """Whether it has finished, or is about to go without having held anything."""
    running: bool = False
    deleting: bool = False
    admission: Admission | None = None
    since: str = ""
    """When it was given what it holds, RFC 3339."""
    revoked: bool = False
    told: tuple[str, str] | None = None
    let_in: bool = True
    """Whether it may start with the quota that it holds; not so while admission checks are to be answered."""
    account: Account = FREE
    """What its Workload object says of it."""
    expected: int = 1
    """How many of its pods have to be ready before it counts as ready; 0 where nobody can tell."""

    @property
    def order(self) -> tuple[int, str, str, str]:
        """Its place in its queue: by priority, creation, name."""
        return -self.shape.priority, self.account.queued_at or self.created, self.key.namespace, self.key.name

    @property
    def is_group(self) -> bool:
        return self.key.kind == GROUP


def read_pod(pod: Object, requests: Amounts, priorities: Mapping[str, int], account: Account = FREE) -> Workload:
    """The workload of a bare pod with ``requests``; ``priorities`` are the WorkloadPriorityClasses'."""
    spec = pod.spec
    admission = read_admission(pod.annotations)
    bound = bool(spec.get("nodeName"))
    gone = is_finished(pod) or (pod.deleting and not bound) or (bound and admission is None)
    priority = priorities.get(pod.labels.get(PRIORITY_CLASS, ""), _whole(spec.get("priority")))
    return Workload(
        pod.key,
        pod.uid,
        pod.labels[LOCAL_QUEUE],
        Shape(priority, _asked(requests, 1), constraints_of(spec), merged([podset_of(pod.annotations, spec, 1)])),
        pod.created,
        ready=not spec.get("schedulingGates"),
        over=gone or bool(admission is None and spec.get("schedulingGates")),
        running=bound,
        deleting=pod.deleting,
        admission=admission,
        since=pod.annotations.get(SINCE, ""),
        revoked=REVOKED in pod.annotations,
        told=told_of(pod.status, RESERVATION in pod.annotations),
        let_in=RESERVATION not in pod.annotations,
        account=account,
    )


def read_pod_group(
    item: Object,
    held: Amounts,
    members: int,
    pod_spec: Manifest | None,
    priorities: Mapping[str, int],
    classes: Mapping[str, int],
    podsets: tuple[PodSet, ...] = (),
    account: Account = FREE,
) -> Workload:
    """The workload of a group whose live pods, ``members`` in number, ask for ``held``; ``pod_spec`` is of one of them.

    ``priorities`` are the WorkloadPriorityClasses', ``classes`` the PriorityClasses'; ``podsets`` those of its pods that ask
    for a place in a topology.
    """
    group = read_group(item)
    least = max(group.min_member, sum(group.min_task_member.values()))
    minimum = {name: _for_all(amount, group.min_member, least) for name, amount in group.min_resources.items()}
    amounts = {name: max(held.get(name, 0), minimum.get(name, 0)) for name in {*held, *minimum}}
    count = max(members, least)
    named = item.labels.get(PRIORITY_CLASS, "")
    own = _whole(pod_spec.get("priority")) if pod_spec is not None else 0
    return Workload(
        group.key,
        group.uid,
        item.labels[LOCAL_QUEUE],
        Shape(
            priorities.get(named, classes.get(group.priority_class, own)),
            _asked(amounts, count),
            constraints_of(pod_spec) if pod_spec is not None else Constraints(),
            podsets,
        ),
        group.created,
        count,
        ready=bool(group.min_resources) or members >= group.min_member,
        over=group.phase == COMPLETED,
        running=group.phase not in ("", PENDING),
        deleting=item.deleting,
        admission=read_admission(item.annotations),
        since=item.annotations.get(SINCE, ""),
        revoked=REVOKED in item.annotations,
        told=group.told,
        let_in=RESERVATION not in item.annotations,
        account=account,
        expected=least,
    )


def constraints_of(spec: Manifest) -> Constraints:
    """What a pod spec demands of nodes."""
    selector, tolerations = spec.get("nodeSelector"), spec.get("tolerations")
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not (selector or tolerations or required):
        return _NONE
    terms = None if required is None else required.get("nodeSelectorTerms") or []
    return Constraints(json.dumps([selector, terms, tolerations], separators=(",", ":"), sort_keys=True))


_NONE = Constraints()


def _for_all(amount: int, count: int, least: int) -> int:
    """What ``least`` members need of which ``count`` need ``amount``: roles may have larger minima than the group itself."""
    return amount if least <= count or not count else -(-amount * least // count)


def _asked(amounts: Amounts, count: int) -> tuple[tuple[str, int], ...]:
    """What quota is asked for: the amounts that are not 0, and the number of pods."""
    return tuple(sorted({**{name: amount for name, amount in amounts.items() if amount}, "pods": count}.items()))


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def told_of(status: Manifest, waits_for_checks: bool) -> tuple[str, str] | None:
    """Why it was told that it waits: for quota, or for checks once it has that. None while it was told nothing."""
    kind = ADMITTED if waits_for_checks else RESERVED
    for condition in status.get("conditions") or ():
        if condition.get("type") == kind and condition.get("status") == "False":
            return str(condition.get("reason") or ""), str(condition.get("message") or "")
    return None
