"""Gangs that wait for room and for nothing else, the most important first, then the oldest; a pod by itself is a gang of one."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from descheduler.domain.cluster.gangs import VOLCANO_GROUP, Gang, Gangs, gang_name
from descheduler.domain.cluster.pod_traits import POD, is_active, moment, node_of, requests_of
from descheduler.domain.plan import Plan
from descheduler.domain.policy.strategy_args import StrategyArgs
from kube import Key, Manifest, Object
from resources import Amounts, add, fits

WAIT_SECONDS = 300
_LET_IN = ("Inqueue", "Running", "Unknown")
_NO_ROOM = "Insufficient "
"""What Kubernetes' word for too little of a resource begins with; who waits for quota or his turn is not told so."""


@dataclass(frozen=True, slots=True)
class WaitingGang:
    """``members`` are as many of its pods as it lacks to start, of each role what that lacks; of a bundle those of every gang."""

    name: str
    members: tuple[Object, ...]

    @property
    def priority(self) -> int:
        return max(_priority(pod) for pod in self.members)


def waiting_gangs(args: StrategyArgs, plan: Plan) -> Iterator[WaitingGang]:
    """Those that have waited long enough, and would fit if all that is free lay together."""
    free = _all_free(plan)
    limit = plan.now - 1000 * args.whole("minWaitSeconds", WAIT_SECONDS)
    for found in sorted(_lacking(args, plan), key=_turn):
        asked: Amounts = {}
        for member in found.members:
            asked = add(asked, requests_of(member))
        if max(map(_age, found.members)) <= limit and fits(asked, free):
            yield found


def _turn(one: WaitingGang) -> tuple[int, int, str, str]:
    return -one.priority, min(map(_age, one.members)), one.members[0].namespace, one.name


def _lacking(args: StrategyArgs, plan: Plan) -> Iterator[WaitingGang]:
    """Bundles of gangs start together, so what all of them lack is looked for at one time."""
    gangs, groups = Gangs(plan.view.store), dict[tuple[str, str], list[Object]]()
    for key, pod in sorted(plan.view.store.of_kind(POD).items()):
        if is_active(pod) and not node_of(pod) and not args.scope.obstacle(pod):
            groups.setdefault((key.namespace, gang_name(pod) or key.name), []).append(pod)
    bundles: dict[tuple[str, ...], dict[str, tuple[Object, ...]]] = {}
    for (namespace, name), pods in groups.items():
        members = _missing(plan, gangs, pods)
        if members:
            own = f"{namespace}/{name}"
            bundles.setdefault(gangs.bundle(pods[0]) or (own,), {})[own] = members
    for bundle, lacking in bundles.items():
        if all(name in lacking or _has_started(plan, gangs, name) for name in bundle):
            names = " and ".join(f"gang {name.partition('/')[2]}" for name in sorted(lacking))
            yield WaitingGang(names, tuple(pod for name in sorted(lacking) for pod in lacking[name]))


def _missing(plan: Plan, gangs: Gangs, pods: Sequence[Object]) -> tuple[Object, ...]:
    """Those of the waiting ``pods`` of one gang that it lacks; none where it lacks more than wait, or does not wait for room."""
    gang = gangs.of(pods[0])
    if gang is None:
        return tuple(pods[:1]) if _lacks_room(pods[0]) else ()
    if not all(map(_lacks_room, pods)) or not _is_let_in(plan, gang):
        return ()
    bound = [member for member in gangs.members(gang) if node_of(member)]
    lacks, chosen = gang.minimum - len(bound), list[Object]()
    have = Counter(_role(pod) for pod in bound)
    for role, least in sorted(_roles(plan, gang).items()):
        waiting = [pod for pod in pods if _role(pod) == role]
        if len(waiting) < least - have[role]:
            return ()
        chosen += waiting[: max(0, least - have[role])]
    taken = {pod.key for pod in chosen}
    others = [pod for pod in pods if pod.key not in taken]
    more = max(0, lacks - len(chosen))
    return tuple(chosen + others[:more]) if len(others) >= more else ()


def _roles(plan: Plan, gang: Gang) -> dict[str, int]:
    """The least number of pods by role, where the gang names any."""
    group = plan.view.store.get(Key(VOLCANO_GROUP, gang.namespace, gang.name))
    given: Manifest = (group.spec.get("minTaskMember") or {}) if group is not None else {}
    return {str(role): least for role, least in given.items() if isinstance(least, int)}


def _role(pod: Object) -> str:
    return str(pod.annotations.get("volcano.sh/task-spec") or "")


def _has_started(plan: Plan, gangs: Gangs, name: str) -> bool:
    """Whether a gang of a bundle has its minimum bound already."""
    namespace, _, own = name.partition("/")
    pods = [pod for pod in plan.view.store.in_namespace(POD, namespace) if gang_name(pod) == own and node_of(pod)]
    gang = gangs.of(pods[0]) if pods else None
    return gang is not None and len(pods) >= gang.minimum


def _lacks_room(pod: Object) -> bool:
    """Whether the scheduler has looked at the pod and found no node with room; not where quota or a gate keeps it."""
    told = {str(one.get("type")): one for one in pod.status.get("conditions") or ()}
    if told.get("QuotaReserved", {}).get("status") == "False" or pod.spec.get("schedulingGates"):
        return False
    scheduled = told.get("PodScheduled", {})
    return scheduled.get("status") == "False" and _NO_ROOM in str(scheduled.get("message") or "")


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
        total = add(total, plan.fitting.whole(node))
    return total


def _age(pod: Object) -> int:
    return moment(pod.created)


def _priority(pod: Object) -> int:
    return int(pod.spec.get("priority") or 0)
