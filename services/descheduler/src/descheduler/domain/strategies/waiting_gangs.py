"""Gangs that wait for room and for nothing else, the oldest first; a pod by itself is a gang of one."""

from collections.abc import Iterator
from dataclasses import dataclass

from descheduler.domain.cluster.fitting import allocatable
from descheduler.domain.cluster.gangs import VOLCANO_GROUP, Gang, Gangs, gang_name
from descheduler.domain.cluster.pod_traits import POD, is_active, moment, node_of, requests_of
from descheduler.domain.plan import Plan
from descheduler.domain.policy.strategy_args import StrategyArgs
from kube import Key, Object
from resources import Amounts, add, fits

WAIT_SECONDS = 300
_LET_IN = ("Inqueue", "Running", "Unknown")


@dataclass(frozen=True, slots=True)
class WaitingGang:
    """``members`` are as many of its pods as it lacks to start."""

    gang: Gang
    members: tuple[Object, ...]


def waiting_gangs(args: StrategyArgs, plan: Plan) -> Iterator[WaitingGang]:
    """Those that have waited long enough, and would fit if all that is free lay together."""
    free = _all_free(plan)
    limit = plan.now - 1000 * args.whole("minWaitSeconds", WAIT_SECONDS)
    for found in sorted(
        _lacking(args, plan), key=lambda one: (min(map(_age, one.members)), one.gang.namespace, one.gang.name)
    ):
        asked: Amounts = {}
        for member in found.members:
            asked = add(asked, requests_of(member))
        if max(map(_age, found.members)) <= limit and fits(asked, free):
            yield found


def _lacking(args: StrategyArgs, plan: Plan) -> Iterator[WaitingGang]:
    gangs, groups = Gangs(plan.view.store), dict[tuple[str, str], list[Object]]()
    for key, pod in sorted(plan.view.store.of_kind(POD).items()):
        if is_active(pod) and not node_of(pod) and _lacks_room(pod) and not args.scope.obstacle(pod):
            groups.setdefault((key.namespace, gang_name(pod) or key.name), []).append(pod)
    for (namespace, name), pods in groups.items():
        gang = gangs.of(pods[0])
        if gang is None:
            yield WaitingGang(Gang(namespace, name, 1), (pods[0],))
            continue
        lacks = gang.minimum - sum(bool(node_of(member)) for member in gangs.members(gang))
        if 0 < lacks <= len(pods) and _is_let_in(plan, gang):
            yield WaitingGang(gang, tuple(pods[:lacks]))


def _lacks_room(pod: Object) -> bool:
    """Whether the scheduler has looked at the pod and found no node; not where quota or a gate keeps it."""
    told = {str(one.get("type")): one for one in pod.status.get("conditions") or ()}
    if told.get("QuotaReserved", {}).get("status") == "False" or pod.spec.get("schedulingGates"):
        return False
    return bool(told.get("PodScheduled", {}).get("status") == "False")


def _is_let_in(plan: Plan, gang: Gang) -> bool:
    """Whether its queue has let it in, and it does not ask for a topology, of which a plan knows nothing."""
    group = plan.view.store.get(Key(VOLCANO_GROUP, gang.namespace, gang.name))
    return group is None or (group.status.get("phase") in _LET_IN and not group.spec.get("networkTopology"))


def _all_free(plan: Plan) -> Amounts:
    total: Amounts = {}
    for node in plan.view.nodes():
        total = add(total, plan.fitting.free(node))
    return total


def whole_of(plan: Plan) -> Amounts:
    """What all nodes have together."""
    total: Amounts = {}
    for node in plan.view.nodes():
        total = add(total, allocatable(node))
    return total


def _age(pod: Object) -> int:
    return moment(pod.created)
