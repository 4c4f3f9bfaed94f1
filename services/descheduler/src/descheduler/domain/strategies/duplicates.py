"""RemoveDuplicates: several pods of one controller on one node, while other nodes could have them."""

from descheduler.domain.cluster.fitting import takes_pods
from descheduler.domain.cluster.pod_traits import is_active, node_of
from descheduler.domain.cluster.workloads import Workload
from descheduler.domain.move import Move
from descheduler.domain.plan import Plan
from descheduler.domain.policy.strategy_args import StrategyArgs
from kube import Key, Object
from kube.node_choice import may_run
from kube.words import counted

NAME = "RemoveDuplicates"


def remove_duplicates(args: StrategyArgs, plan: Plan) -> None:
    """No node keeps more of a controller's pods than its share, rounded up, of those that could have them."""
    excluded = args.words("excludeOwnerKinds")
    seen: set[str] = set()
    for node in plan.view.nodes():
        for pod in plan.view.pods_on(node.name) if args.takes(node) else ():
            workload = plan.arbiter.workloads.of(pod)
            if workload is None or workload.uid in seen or args.scope.obstacle(pod):
                continue
            seen.add(workload.uid)
            if workload.kind.partition(".")[0] not in (*excluded, "DaemonSet"):
                _even(plan, workload)


def _even(plan: Plan, workload: Workload) -> None:
    pods = [pod for pod in plan.arbiter.workloads.pods(workload) if is_active(pod) and node_of(pod)]
    if len({node_of(pod) for pod in pods}) == len(pods):
        return
    homes = [node for node in plan.view.nodes() if takes_pods(node) and may_run(pods[0].spec, node)]
    if len(homes) < 2:
        return
    share = -(-len(pods) // len(homes))
    for pod in pods:
        here = [other for other in pods if _place(plan, other) == node_of(pod)]
        if len(here) > share and pod.key not in plan.moving:
            _move(plan, pod, pods, share, len(here))


def _move(plan: Plan, pod: Object, pods: list[Object], share: int, here: int) -> None:
    if plan.stays(pod):
        return
    places = [_place(plan, other) for other in pods]
    found = [node for node in plan.destinations(pod) if places.count(node.name) < share]
    target = min(found, key=lambda node: (places.count(node.name), -plan.room(node), node.name), default=None)
    if target is None:
        plan.skipped[pod.key] = "no node with fewer pods of its controller would take it"
        return
    message = f"{node_of(pod)} has {counted(here, 'pod')} of one controller, and {share} are its share"
    plan.add(Move(pod, NAME, message, target.name))


def _place(plan: Plan, pod: Object) -> str:
    """Where the plan has the pod."""
    places: dict[Key, str] = plan.fitting.neighbours.places
    return places.get(pod.key, "")
