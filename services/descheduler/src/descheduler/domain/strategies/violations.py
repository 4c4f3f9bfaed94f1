"""Pods where they may not be any more: since then the node, its taints, or their neighbours have changed."""

from collections.abc import Iterator

from descheduler.domain.cluster.neighbours import keeps_apart, spreads
from descheduler.domain.cluster.pod_traits import importance, node_of
from descheduler.domain.move import Move
from descheduler.domain.plan import Plan
from descheduler.domain.policy.strategy_args import StrategyArgs
from kube import Manifest, Object
from kube.node_choice import may_run, tolerates

TAINTS, AFFINITY = "RemovePodsViolatingNodeTaints", "RemovePodsViolatingNodeAffinity"
ANTI_AFFINITY = "RemovePodsViolatingInterPodAntiAffinity"
SPREAD = "RemovePodsViolatingTopologySpreadConstraint"


def remove_tainted(args: StrategyArgs, plan: Plan) -> None:
    """RemovePodsViolatingNodeTaints: those that do not tolerate a taint of their node that lets nobody in."""
    effects = ("NoSchedule", *(("PreferNoSchedule",) if args.truth("includePreferNoSchedule") else ()))
    excluded = args.words("excludedTaints")
    for node in plan.view.nodes():
        taints = [
            taint
            for taint in node.spec.get("taints") or ()
            if taint.get("effect") in effects and not {str(taint.get("key")), _said(taint)} & set(excluded)
        ]
        for pod in _meant(plan, args, node) if taints else ():
            broken = [taint for taint in taints if not _tolerated(pod, taint)]
            if broken:
                plan.propose(pod, TAINTS, f"{pod.name} does not tolerate {_said(broken[0])} of {node.name}")


def remove_misplaced(args: StrategyArgs, plan: Plan) -> None:
    """RemovePodsViolatingNodeAffinity: those whose selector or required affinity their node does not meet any more."""
    for node in plan.view.nodes():
        for pod in _meant(plan, args, node):
            if not may_run({**pod.spec, "tolerations": [{"operator": "Exists"}]}, node):
                plan.propose(pod, AFFINITY, f"{node.name} has not the labels that {pod.name} asks for")


def remove_crowding(args: StrategyArgs, plan: Plan) -> None:
    """RemovePodsViolatingInterPodAntiAffinity: the least important of those that are too near to each other."""
    for node in plan.view.nodes():
        wary = [pod for pod in _meant(plan, args, node) if keeps_apart(pod)]
        for pod in sorted(wary, key=lambda pod: (importance(pod), pod.key)):
            why = plan.fitting.neighbours.kept_away(pod, node)
            if why:
                plan.propose(pod, ANTI_AFFINITY, f"{pod.name} on {node.name}: {why}")


def remove_skewed(args: StrategyArgs, plan: Plan) -> None:
    """RemovePodsViolatingTopologySpreadConstraint: from the fullest domain to the emptiest, while that evens the spread.

    Constraints that have to hold, unless ``constraints`` names ``ScheduleAnyway``, too.
    """
    seen: dict[str, None] = {}
    kinds = args.words("constraints") or ("DoNotSchedule",)
    for node in plan.view.nodes():
        for pod in _meant(plan, args, node):
            for constraint in spreads(pod, kinds):
                workload = plan.arbiter.workloads.of(pod)
                place = f"{workload.uid if workload is not None else pod.uid}/{constraint.get('topologyKey')}"
                if place not in seen:
                    seen[place] = None
                    _even(plan, args, pod, constraint)


def _even(plan: Plan, args: StrategyArgs, one: Object, constraint: Manifest) -> None:
    """Move pods like ``one`` until their spread holds."""
    key, most = str(constraint.get("topologyKey") or ""), int(constraint.get("maxSkew") or 1)
    nodes, tried = plan.view.nodes(), set[str]()
    workload = plan.arbiter.workloads.of(one)
    pods = [one] if workload is None else plan.arbiter.workloads.pods(workload)
    for _ in pods:
        counts = plan.fitting.neighbours.counts(one, constraint, nodes)
        if not counts or max(counts.values()) - min(counts.values()) <= most:
            return
        for pod in sorted(pods, key=lambda pod: (importance(pod), pod.key)):
            node = plan.view.node(plan.fitting.neighbours.places.get(pod.key, ""))
            if node is None or pod.uid in tried or counts.get(node.labels.get(key, "")) != max(counts.values()):
                continue
            tried.add(pod.uid)
            domain, emptiest = node.labels[key], min(counts, key=lambda name: (counts[name], name))
            message = f"{domain} has {counts[domain]} pods like {pod.name}, {emptiest} has {counts[emptiest]}"
            if not args.scope.obstacle(pod) and _spread(plan, pod, key, counts, message):
                break
        else:
            return


def _spread(plan: Plan, pod: Object, key: str, counts: "dict[str, int]", message: str) -> bool:
    """Move one pod to the emptiest domain that takes it, if that is emptier than where it is by more than one."""
    if plan.stays(pod):
        return False
    here = plan.view.node(node_of(pod))
    own = counts[here.labels[key]] if here is not None else 0
    found = [node for node in plan.destinations(pod) if counts.get(node.labels.get(key, ""), own) + 1 < own]
    target = min(found, key=lambda node: (counts[node.labels[key]], -plan.room(node), node.name), default=None)
    if target is None:
        plan.skipped[pod.key] = "no node of an emptier domain would take it"
        return False
    plan.add(Move(pod, SPREAD, message, target.name))
    return True


def _meant(plan: Plan, args: StrategyArgs, node: Object) -> Iterator[Object]:
    """The pods of a node that are looked at, those that a plan has moved already left out."""
    for pod in plan.view.pods_on(node.name) if args.takes(node) else ():
        if pod.key not in plan.moving and not args.scope.obstacle(pod):
            yield pod


def _tolerated(pod: Object, taint: Manifest) -> bool:
    return any(tolerates(one, taint) for one in pod.spec.get("tolerations") or ())


def _said(taint: Manifest) -> str:
    value = taint.get("value")
    return f"{taint.get('key')}={value}" if value else str(taint.get("key"))
