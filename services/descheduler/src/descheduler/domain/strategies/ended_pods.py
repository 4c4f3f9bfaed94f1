"""Pods that are no use any more where they are: failed, restarting over and over, older than they should be."""

from collections.abc import Iterator, Sequence

from descheduler.domain.cluster.pod_traits import began_at, is_active, moment
from descheduler.domain.plan import Plan
from descheduler.domain.policy.strategy_args import StrategyArgs
from kube import Manifest, Object
from kube.words import counted

RESTART_THRESHOLD = 100
LIFE_SECONDS = 604_800


def remove_failed(args: StrategyArgs, plan: Plan) -> None:
    """RemoveFailedPods: their controllers make others; nothing runs in them, so nothing is reserved first."""
    reasons, spared = args.words("reasons"), args.words("excludeOwnerKinds")
    codes: tuple[int, ...] = args.get("exitCodes", ())
    for pod in _all(plan, args):
        status = pod.status
        if status.get("phase") != "Failed" or plan.now - _ended_at(pod) < 1000 * args.whole("minPodLifetimeSeconds", 0):
            continue
        owner = pod.controller
        if owner is not None and str(owner.get("kind")) in spared:
            continue
        ends = list(_terminations(pod, args.truth("includingInitContainers")))
        said = [str(status.get("reason") or ""), *(str(end.get("reason") or "") for end in ends)]
        if reasons and not set(reasons) & set(said):
            continue
        if codes and not {end.get("exitCode") for end in ends} & set(codes):
            continue
        why = next((reason for reason in said if reason), "no reason is told")
        plan.propose(pod, "RemoveFailedPods", f"{pod.name} has failed: {why}", leaves=False)


def remove_restarting(args: StrategyArgs, plan: Plan) -> None:
    """RemovePodsHavingTooManyRestarts: perhaps it is the node's fault."""
    most, states = args.whole("podRestartThreshold", RESTART_THRESHOLD), args.words("states")
    for pod in _running(plan, args):
        listed = _container_statuses(pod, args.truth("includingInitContainers"))
        restarts = sum(int(one.get("restartCount") or 0) for one in listed)
        if restarts >= most and (not states or set(states) & _states(pod, listed)):
            message = f"{pod.name} has restarted {counted(restarts, 'time')}, and {most} are enough"
            plan.propose(pod, "RemovePodsHavingTooManyRestarts", message)


def remove_old(args: StrategyArgs, plan: Plan) -> None:
    """PodLifeTime: the oldest first."""
    most, states = args.whole("maxPodLifeTimeSeconds", LIFE_SECONDS), args.words("states")
    pods = sorted(_running(plan, args), key=lambda pod: (moment(pod.created), pod.key))
    for pod in pods:
        age = (plan.now - moment(pod.created)) // 1000
        listed = _container_statuses(pod, args.truth("includingInitContainers"))
        if age > most and (not states or set(states) & _states(pod, listed)):
            plan.propose(pod, "PodLifeTime", f"{pod.name} is {age} s old, and {most} s are enough")


def _all(plan: Plan, args: StrategyArgs) -> Iterator[Object]:
    """Every pod that is on a node and is meant, by node and key."""
    for node in plan.view.nodes():
        for pod in plan.view.all_on(node.name) if args.takes(node) else ():
            if not pod.deleting and not args.scope.obstacle(pod):
                yield pod


def _running(plan: Plan, args: StrategyArgs) -> Iterator[Object]:
    return (pod for pod in _all(plan, args) if is_active(pod))


def _container_statuses(pod: Object, with_init: bool) -> Sequence[Manifest]:
    names = ("containerStatuses", "initContainerStatuses") if with_init else ("containerStatuses",)
    return [one for name in names for one in pod.status.get(name) or ()]


def _states(pod: Object, listed: Sequence[Manifest]) -> set[str]:
    """The phase of a pod, its reason, and what its containers wait for or ended by."""
    found = {str(pod.status.get("phase") or ""), str(pod.status.get("reason") or "")}
    for one in listed:
        for part in (one.get("state") or {}).values():
            found.add(str((part or {}).get("reason") or ""))
    return found - {""}


def _terminations(pod: Object, with_init: bool) -> Iterator[Manifest]:
    for one in _container_statuses(pod, with_init):
        for state in (one.get("state"), one.get("lastState")):
            ended: Manifest | None = (state or {}).get("terminated")
            if ended:
                yield ended


def _ended_at(pod: Object) -> int:
    return max([began_at(pod), *(moment(str(end.get("finishedAt") or "")) for end in _terminations(pod, True))])
