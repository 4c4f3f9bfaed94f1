"""Room for a gang that waits: which moves would let it start, and is it worth them.

A gang may wait though there is room enough, because that lies in pieces: no single node has what one member asks for. Members
are given places where there is room as it is; for each of the others every node is asked what would have to leave so that it
fits, and what costs least is taken. Whatever leaves must fit somewhere else, and not where a member could be: nobody is without
a place by it. All of it, or nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from descheduler.domain.cluster.fitting import takes_pods
from descheduler.domain.cluster.pod_traits import importance, requests_of
from descheduler.domain.move import Move
from descheduler.domain.plan import Plan
from descheduler.domain.policy.strategy_args import StrategyArgs
from descheduler.domain.strategies.expected_ends import expected_ends
from descheduler.domain.strategies.waiting_gangs import WAIT_SECONDS, WaitingGang, waiting_gangs, whole_of
from kube import Object, rfc3339
from kube.node_choice import may_run
from kube.words import counted
from resources import Amounts, add, fits, subtract

NAME = "Defragmentation"
MOST_MOVES, MOST_COST_PERCENT = 8, 50
TRIED = 5
"""So many gangs are thought about in one round: the oldest."""


@dataclass(frozen=True, slots=True)
class Clearing:
    """One place for one member: the pods that leave ``node`` for it, each with where it goes."""

    node: str
    moves: tuple[tuple[Object, str], ...]


def defragment(args: StrategyArgs, plan: Plan) -> None:
    """Make room for the most important gang that can be helped, of those the one that has waited longest; one in a round."""
    nodes = [node for node in plan.view.nodes() if args.takes(node)]
    most, percent = args.whole("maxMoves", MOST_MOVES), args.whole("maxCostPercent", MOST_COST_PERCENT)
    for number, waiting in enumerate(waiting_gangs(args, plan)):
        if number >= TRIED:
            return
        name, trial = waiting.name, plan.fork()
        if not clear(trial, waiting, most, nodes):
            plan.notes.append(f"{name}: no {most} moves would make room for the {len(waiting.members)} that it lacks")
            continue
        moves = trial.moves[len(plan.moves) :]
        if not moves or _starts_by_itself(args, plan, waiting):
            continue
        whole = whole_of(plan)
        cost, gain = _size([move.pod for move in moves], whole), _size(waiting.members, whole)
        price = (
            f"{counted(len(moves), 'move')} would let it start; they disturb {100 * cost // gain if gain else 0} % of what it asks for, "
            f"and it is worth {percent} %"
        )
        plan.notes.append(f"{name}: {price}")
        if cost * 100 > gain * percent:
            continue
        take_over(plan, trial, waiting, [replace(move, message=f"{move.message}: {price}") for move in moves])
        return


def _starts_by_itself(args: StrategyArgs, plan: Plan, waiting: WaitingGang) -> bool:
    """Whether it need not wait for moves longer than it had to wait to be thought of, as others end by then."""
    ends = expected_ends(plan, plan.now + 1000 * args.whole("minWaitSeconds", WAIT_SECONDS))
    for number, (end, pod) in enumerate(ends, 1):
        rest = plan.fork()
        for _, gone in ends[:number]:
            rest.fitting.move(gone, "")
        if all(_given_free(rest, member) for member in waiting.members):
            plan.notes.append(
                f"{waiting.name}: nobody is moved for it; it can start at {rfc3339(end)}, when {pod.name} ends"
            )
            return True
    return False


def clear(trial: Plan, waiting: WaitingGang, most: int, nodes: Sequence[Object], strategy: str = NAME) -> bool:
    """Give every member a place in ``trial``, with at most ``most`` moves in all; whether they are enough."""
    largest_first = sorted(waiting.members, key=lambda pod: (-requests_of(pod).get("cpu", 0), pod.key))
    left = [member for member in largest_first if not _given_free(trial, member)]
    began = len(trial.moves)
    for member in left:
        if len(trial.moves) - began >= most:
            return False
        options = [found for node in nodes if (found := _clearing(trial, member, node)) is not None]
        best = min(options, key=lambda one: (len(one.moves), _weight(one), one.node), default=None)
        if best is None or len(trial.moves) - began + len(best.moves) > most:
            return False
        for pod, target in best.moves:
            message = f"{best.node} gets room for {member.name} of {waiting.name}, which waits"
            trial.add(Move(pod, strategy, message, target))
        trial.fitting.move(member, best.node)
    return True


def take_over(plan: Plan, trial: Plan, waiting: WaitingGang, moves: Sequence[Move]) -> None:
    """What was tried is planned: the moves, and the room that they make counts as taken."""
    for move in moves:
        plan.add(move)
    for member in waiting.members:
        plan.fitting.move(member, trial.fitting.neighbours.places[member.key])


def _given_free(trial: Plan, member: Object) -> bool:
    """Give the member a node that has room as it is, the fullest that does; whether there is one."""
    free = [node for node in trial.view.nodes() if _has_room(trial, member, node)]
    found = [node for node in free if not trial.fitting.obstacle(member, node)]
    best = min(found, key=lambda node: (trial.fitting.free(node).get("cpu", 0), node.name), default=None)
    if best is not None:
        trial.fitting.move(member, best.name)
    return best is not None


def _clearing(trial: Plan, member: Object, node: Object) -> Clearing | None:
    """What would have to leave ``node``: the least important first, and none that is not needed; None where nothing helps."""
    if not takes_pods(node) or not may_run(member.spec, node) or trial.fitting.neighbours.obstacle(member, node):
        return None
    asked, free = requests_of(member), trial.fitting.free(node)
    priority = int(member.spec.get("priority") or 0)
    candidates = [
        pod
        for pod in trial.view.pods_on(node.name)
        if pod.key not in trial.moving
        and int(pod.spec.get("priority") or 0) <= priority
        and _helps(requests_of(pod), asked, free)
    ]
    room = free
    for pod in candidates:
        room = add(room, requests_of(pod))
    if not fits(asked, room):
        return None
    chosen = _fewest(trial, candidates, asked, free)
    moves = None if chosen is None else _elsewhere(trial, chosen, member, node)
    return None if moves is None else Clearing(node.name, moves)


def _fewest(trial: Plan, candidates: Sequence[Object], asked: Amounts, free: Amounts) -> list[Object] | None:
    """Pods that may leave, until there is room; those that turn out not to be needed stay. None where they are not enough."""
    chosen: list[Object] = []
    for pod in sorted(candidates, key=lambda pod: (importance(pod), requests_of(pod).get("cpu", 0), pod.key)):
        if fits(asked, free):
            break
        if not trial.stays(pod):
            chosen.append(pod)
            free = add(free, requests_of(pod))
    if not fits(asked, free):
        return None
    for pod in list(chosen):
        if fits(asked, without := subtract(free, requests_of(pod))):
            chosen.remove(pod)
            free = without
    return chosen


def _elsewhere(
    trial: Plan, chosen: Sequence[Object], member: Object, node: Object
) -> tuple[tuple[Object, str], ...] | None:
    """The fullest node that takes it for each of ``chosen``, found one after the other and taken back; None where one has none."""
    moves: list[tuple[Object, str]] = []
    for pod in chosen:
        others = (
            other for other in trial.view.nodes() if other.name != node.name and not _has_room(trial, member, other)
        )
        places = [other for other in others if not (trial.heats(pod, other.name) or trial.fitting.obstacle(pod, other))]
        target = min(places, key=lambda other: (trial.fitting.free(other).get("cpu", 0), other.name), default=None)
        if target is None:
            break
        trial.fitting.move(pod, target.name)
        moves.append((pod, target.name))
    for pod, _ in reversed(moves):
        trial.fitting.move(pod, node.name)
    return tuple(moves) if len(moves) == len(chosen) else None


def _has_room(trial: Plan, member: Object, node: Object) -> bool:
    """Whether a member could be on the node as it is: nobody is moved onto that."""
    return takes_pods(node) and may_run(member.spec, node) and fits(requests_of(member), trial.fitting.free(node))


def _helps(freed: Amounts, asked: Amounts, free: Amounts) -> bool:
    """Whether a pod takes anything of which too little is free."""
    return any(freed.get(name, 0) > 0 for name, amount in asked.items() if amount > free.get(name, 0))


def _weight(clearing: Clearing) -> int:
    return sum(requests_of(pod).get("cpu", 0) for pod, _ in clearing.moves)


def _size(pods: Sequence[Object], whole: Mapping[str, int]) -> Fraction:
    """What pods ask for, as a share of what the cluster has, by the resource that matters most."""
    asked: Amounts = {}
    for pod in pods:
        asked = add(asked, requests_of(pod))
    shares = (Fraction(amount, whole[name]) for name, amount in asked.items() if whole.get(name))
    return max(shares, default=Fraction(0))
