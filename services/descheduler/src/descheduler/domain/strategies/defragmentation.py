"""Room for a gang that waits: which moves would let it start, and is it worth them.

A gang may wait though there is room enough, because that lies in pieces: no single node has what one member asks for. For each
node it is asked what would have to leave so that one more member fits; what costs least is taken first, until the minimum
fits. Whatever leaves must fit somewhere else, beside what the gang takes: nobody is without a place by it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from descheduler.domain.cluster.fitting import Fitting, allocatable, takes_pods
from descheduler.domain.cluster.gangs import Gang, Gangs, gang_name
from descheduler.domain.cluster.pod_traits import POD, importance, is_active, moment, node_of, requests_of
from descheduler.domain.plan import Move, Plan
from descheduler.domain.policy.strategy_args import StrategyArgs
from kube import Key, Object
from kube.node_choice import may_run
from kube.words import counted
from resources import Amounts, add, fits, subtract

NAME = "Defragmentation"
WAIT_SECONDS, MOST_MOVES, MOST_COST_PERCENT = 300, 8, 50


@dataclass(frozen=True, slots=True)
class Clearing:
    """One place for one member: the pods that leave ``node`` for it, each with where it goes."""

    node: str
    member: Object
    moves: tuple[tuple[Object, str], ...]


def defragment(args: StrategyArgs, plan: Plan) -> None:
    """Make room for the gang that has waited longest and can be helped; one in a round."""
    most = args.whole("maxMoves", MOST_MOVES)
    for gang, members in _waiting(plan, args):
        if any(plan.arbiter.protection.gangs.of(pod) == gang for pod in members if pod.key in plan.moving):
            continue
        clearings = _clear(plan, members, most)
        if clearings is None:
            plan.notes.append(f"gang {gang.name}: no {most} moves would make room for all {len(members)} that it needs")
            continue
        moves = [(clearing, *move) for clearing in clearings for move in clearing.moves]
        if not moves:
            continue
        cost, gain = _size([pod for _, pod, _ in moves], plan), _size(members, plan)
        percent = args.whole("maxCostPercent", MOST_COST_PERCENT)
        if cost * 100 > gain * percent:
            plan.notes.append(
                f"gang {gang.name}: {counted(len(moves), 'move')} would let it start, but they move {100 * cost // max(1, gain)} % "
                f"of what it asks for, and {percent} % are worth it"
            )
            continue
        for clearing, pod, target in moves:
            message = f"{clearing.node} gets room for {clearing.member.name} of gang {gang.name}, which waits"
            plan.add(Move(pod, NAME, message, target))
        return


def _waiting(plan: Plan, args: StrategyArgs) -> Iterator[tuple[Gang, list[Object]]]:
    """Gangs that have waited long enough with so many of their pods as they need, the oldest first; pods by themselves, too."""
    gangs, groups = Gangs(plan.view.store), dict[tuple[str, str], list[Object]]()
    for key, pod in sorted(plan.view.store.of_kind(POD).items()):
        if is_active(pod) and not node_of(pod) and not args.scope.obstacle(pod) and _is_unschedulable(pod):
            groups.setdefault((key.namespace, gang_name(pod) or key.name), []).append(pod)
    limit = plan.now - 1000 * args.whole("minWaitSeconds", WAIT_SECONDS)
    aged = sorted(groups.items(), key=lambda one: (min(moment(pod.created) for pod in one[1]), one[0]))
    for (namespace, name), pods in aged:
        if max(moment(pod.created) for pod in pods) > limit:
            continue
        gang = gangs.of(pods[0]) or Gang(namespace, name, 1)
        placed = sum(bool(node_of(member)) for member in gangs.members(gang)) if gang_name(pods[0]) else 0
        needed = max(1, gang.minimum - placed)
        if len(pods) >= needed:
            yield gang, pods[:needed]


def _clear(plan: Plan, members: list[Object], most: int) -> list[Clearing] | None:
    """A place for every member, with at most ``most`` moves in all; None where they are not enough."""
    rehearsal = Fitting(plan.view)
    for key in sorted(plan.moving):
        pod = plan.view.store.get(key)
        if pod is not None and plan.moving[key]:
            rehearsal.move(pod, plan.moving[key])
    leaving: dict[Key, None] = {}
    found: list[Clearing] = []
    for member in members:
        options = [
            clearing
            for node in plan.view.nodes()
            if (clearing := _clearing(plan, rehearsal, member, node, leaving)) is not None
        ]
        best = min(options, key=lambda one: _price(plan, one), default=None)
        if best is None or len(leaving) + len(best.moves) > most:
            return None
        for pod, target in best.moves:
            rehearsal.move(pod, target)
            leaving[pod.key] = None
        rehearsal.move(member, best.node)
        found.append(best)
    return found


def _clearing(
    plan: Plan, rehearsal: Fitting, member: Object, node: Object, leaving: dict[Key, None]
) -> Clearing | None:
    """What would have to leave ``node`` for ``member``: the least important first, and none that is not needed; None: nothing helps."""
    if not takes_pods(node) or not may_run(member.spec, node):
        return None
    asked, free = requests_of(member), rehearsal.free(node)
    priority = int(member.spec.get("priority") or 0)
    candidates = [
        pod
        for pod in plan.view.pods_on(node.name)
        if pod.key not in leaving
        and pod.key not in plan.moving
        and int(pod.spec.get("priority") or 0) <= priority
        and _helps(requests_of(pod), asked, free)
    ]
    chosen: list[Object] = []
    for pod in sorted(candidates, key=lambda pod: (importance(pod), requests_of(pod).get("cpu", 0), pod.key)):
        if fits(asked, free):
            break
        if not plan.stays(pod):
            chosen.append(pod)
            free = add(free, requests_of(pod))
    if not fits(asked, free):
        return None
    for pod in list(chosen):
        if fits(asked, subtract(free, requests_of(pod))):
            chosen.remove(pod)
            free = subtract(free, requests_of(pod))
    moves = _elsewhere(plan, rehearsal, chosen, member, node)
    return None if moves is None else Clearing(node.name, member, moves)


def _elsewhere(
    plan: Plan, rehearsal: Fitting, chosen: list[Object], member: Object, node: Object
) -> tuple[tuple[Object, str], ...] | None:
    """A node for each of ``chosen``, found one after the other and taken back again; None where one has none."""
    moves: list[tuple[Object, str]] = []
    for pod in chosen:
        target = next(
            (
                other.name
                for other in plan.view.nodes()
                if other.name != node.name
                and not _could_have(rehearsal, member, other)
                and not rehearsal.obstacle(pod, other)
            ),
            "",
        )
        if not target:
            break
        rehearsal.move(pod, target)
        moves.append((pod, target))
    for pod, _ in reversed(moves):
        rehearsal.move(pod, node.name)
    return tuple(moves) if len(moves) == len(chosen) else None


def _could_have(rehearsal: Fitting, member: Object, node: Object) -> bool:
    """Whether the node has a place for a member as it is: nobody is moved onto that."""
    return takes_pods(node) and may_run(member.spec, node) and fits(requests_of(member), rehearsal.free(node))


def _price(plan: Plan, clearing: Clearing) -> tuple[int, int, str]:
    return len(clearing.moves), _size([pod for pod, _ in clearing.moves], plan), clearing.node


def _size(pods: list[Object], plan: Plan) -> int:
    """What pods ask for, as thousandths of a percent of what the cluster has of it, by the resource that matters most."""
    whole: Amounts = {}
    for node in plan.view.nodes():
        whole = add(whole, allocatable(node))
    asked: Amounts = {}
    for pod in pods:
        asked = add(asked, requests_of(pod))
    return max((amount * 100_000 // whole[name] for name, amount in asked.items() if whole.get(name)), default=0)


def _helps(freed: Amounts, asked: Amounts, free: Amounts) -> bool:
    """Whether a pod takes anything of which too little is free."""
    return any(freed.get(name, 0) > 0 for name, amount in asked.items() if amount > free.get(name, 0))


def _is_unschedulable(pod: Object) -> bool:
    conditions = pod.status.get("conditions") or ()
    return any(one.get("type") == "PodScheduled" and one.get("status") == "False" for one in conditions)
