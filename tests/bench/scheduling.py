"""How fast gang_scheduler's core decides, by itself: placement, neighbours, reclaim, and the cost of more nodes."""

import resource
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context

from tests.bench.figures import Figure, at_least, at_most, median
from tests.bench.plain_scheduler import plain_rate
from tests.bench.scheduler_core import CREATED, GROUP, NOW, cluster, gang, gangs, node, run, singles, template

from chassis.allocator import keep_freed_memory
from chassis.garbage import search_in_steps
from gang_scheduler.domain.core import SchedulerCore
from kube import Decision, Event, Key, Manifest, Object, Outcome, Verb

NODES = 5_000
KUBE_SCHEDULER = "kube-scheduler, its own benchmark's threshold: {} pods/s"


async def placement() -> list[Figure]:
    """Decide only: gangs and single pods on 5,000 nodes."""
    worker = [template(cpu=4, memory="8Gi")]
    mixed = [template(cpu=f"{100 * (1 + n % 16)}m", memory=f"{1 + n % 5}Gi") for n in range(50)]
    plain = plain_rate(NODES, {"cpu": 4_000, "memory": 8 << 30})
    beside = f"one pod after the other, a loop over the nodes: {plain:,.0f} pods/s"
    of_100 = run(cluster(NODES), gangs(400, 100, worker)).decided
    of_8 = run(cluster(NODES), gangs(2_500, 8, worker)).decided
    single = run(cluster(NODES), singles(20_000, mixed, 100)).decided
    return [
        at_least(f"gangs of 100 on {NODES} nodes, decide only", of_100, "pods/s", 100_000, beside, plain),
        at_least(f"gangs of 8 on {NODES} nodes, decide only", of_8, "pods/s", 30_000, beside, plain),
        at_least(f"single pods of 50 shapes on {NODES} nodes, decide only", single, "pods/s", 20_000, beside, plain),
        _attempt(),
    ]


def _attempt() -> Figure:
    """One attempt to start a gang of 3 on a cluster where 3,000 gangs run."""
    core = cluster(NODES)
    body = template(cpu=1, memory="2Gi")
    run(core, gangs(3_000, 3, [body], together=100))
    took = []
    for number in range(200):
        arrival = gang(f"late{number:04}", 3, body)
        core.fold([Event(None, item) for item in arrival], NOW)
        began = time.process_time()
        made = core.decide(NOW, frozenset())
        took.append((time.process_time() - began) * 1000)
        for index, decision in enumerate(made):
            core.assume(f"late/{number}/{index}", decision)
    return at_most(
        "gang of 3 beside 3,000 gangs, one attempt, median", median(took), "ms", 0.5, "kube-scheduler: 5.7 ms"
    )


async def neighbours() -> list[Figure]:
    """Pods that care where others are."""
    figures = []
    for what, rule, threshold in (
        ("required affinity", "near", 35),
        ("required anti-affinity", "apart", 60),
        ("spreading over zones", "even", 460),
    ):
        rate = run(cluster(NODES), _coupled(rule, NODES - 100)).decided
        plain = plain_rate(NODES, {"cpu": 100, "memory": 200 << 20}, rule)
        beside = f"a loop over the nodes: {plain:,.0f} pods/s; {KUBE_SCHEDULER.format(threshold)}"
        figures.append(at_least(f"pods with {what} on {NODES} nodes", rate, "pods/s", 5_000, beside, plain))
    return figures


def _coupled(rule: str, count: int) -> Iterator[list[Object]]:
    selector = {"matchLabels": {"color": "blue"}}
    term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname" if rule == "apart" else "zone"}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    body = template(cpu="100m", memory="200Mi")
    if rule == "even":
        body["spec"]["topologySpreadConstraints"] = [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
        ]
    else:
        body["spec"]["affinity"] = {"podAffinity" if rule == "near" else "podAntiAffinity": required}
    for first in range(0, count, 100):
        yield [_labelled(f"p{number:06}", body) for number in range(first, min(count, first + 100))]


def _labelled(name: str, body: Manifest) -> Object:
    metadata: Manifest = {"creationTimestamp": CREATED, "labels": {"color": "blue"}}
    return Object(Key("Pod", "default", name), f"uid-{name}", metadata, body, {"phase": "Pending"})


async def reclaim() -> list[Figure]:
    """A job as large as a quarter of a full cluster takes back its queue's share: the median of five decisions of each size.

    The first of a process is slower than all others: modules are imported late, and numpy looks for its loops.
    """
    search_in_steps()  # as the services do
    small, large = (median([_reclaim(nodes) for _ in range(5)]) for nodes in (500, 1_000))
    return [
        at_most("reclaim of a quarter of 500 nodes × 8 GPUs", small, "s", 0.1, "KAI's scheduler: 8.97 s"),
        at_most("reclaim of a quarter of 1,000 nodes × 8 GPUs", large, "s", 0.3, "KAI's scheduler: not in 40 min"),
    ]


def _reclaim(nodes: int) -> float:
    core = SchedulerCore()
    core.fold([Event(None, node(f"node-{number:05}", 64, 8)) for number in range(nodes)], NOW)
    half = {"nvidia.com/gpu": 4 * nodes, "cpu": 32_000 * nodes, "memory": nodes << 37}
    shares = {"queues": {"a": {"deserved": half}, "b": {"deserved": half}}}
    core.hear("queue_manager", Decision("EntitlementsComputed", Key("", "", ""), payload=shares))
    body = template(**{"cpu": 1, "memory": "1Gi", "nvidia.com/gpu": 1})
    _settle(core, _job("running", 8 * nodes, body, "a", least=1))
    core.fold([Event(None, item) for item in _job("asking", 2 * nodes, body, "b", least=2 * nodes)], NOW)
    began = time.process_time()
    made = core.decide(NOW, frozenset())
    took = time.process_time() - began
    victims = sum(mutation.verb is Verb.EVICT for decision in made for mutation in decision.mutations)
    assert victims == 2 * nodes, f"{victims} victims for {2 * nodes} pods"
    return took


def _job(name: str, pods: int, body: Manifest, queue: str, least: int) -> list[Object]:
    members = gang(name, pods, body)
    spec = {"minMember": least, "queue": queue}
    members[0] = members[0].changed(body={"spec": spec})
    return members


def _settle(core: SchedulerCore, arrival: list[Object]) -> None:
    """Let all of ``arrival`` be placed and run."""
    run(core, iter([arrival]))


async def growth() -> list[Figure]:
    """What one decision costs on more and more nodes, and the memory of a large cluster."""
    keep_freed_memory()  # as the services do
    memory = _memory()
    return [*_growth_of("a new shape", new=True), *_growth_of("a known shape", new=False), memory]


def _memory() -> Figure:
    """The resident memory of a large cluster, in a process of its own: what other benchmarks have used would count."""
    with ProcessPoolExecutor(1, get_context("spawn")) as apart:
        used = apart.submit(_used_by_a_large_cluster).result()
    return at_most("memory at 100,000 nodes and 1,000,000 pods", used, "GiB", 1.5)


def _used_by_a_large_cluster() -> float:
    keep_freed_memory()
    core = cluster(100_000)
    _settle_quietly(core, 10_000, 100, template(cpu="500m", memory="1Gi"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 / 1024


def _growth_of(what: str, *, new: bool) -> list[Figure]:
    costs = {nodes: _decision_cost(nodes, new=new) for nodes in (1_000, 10_000, 100_000)}
    per_node = (costs[100_000] - costs[1_000]) / 99_000 * 1e9
    steepest = max((costs[b] / costs[a]) / (b / a) for a, b in pairwise(sorted(costs)))
    told = ", ".join(f"{nodes:,} nodes {cost * 1000:.2f} ms" for nodes, cost in costs.items())
    return [
        at_most(f"a gang of 8 of {what}, 1,000 → 100,000 nodes, per node", per_node, "ns", 50, told),
        at_most("  growth against linear growth", steepest, "×", 1),
    ]


def _decision_cost(nodes: int, *, new: bool) -> float:
    """Seconds of the median decision on a gang of 8, each ``new`` in its shape or all of one."""
    core = cluster(nodes)
    took = []
    for number in range(30):
        arrival = gang(f"g{number}", 8, template(cpu=f"{1000 + number * new}m", memory="2Gi"))
        core.fold([Event(None, item) for item in arrival], NOW)
        began = time.process_time()
        made = core.decide(NOW, frozenset())
        took.append(time.process_time() - began)
        for index, decision in enumerate(made):
            core.assume(f"{number}/{index}", decision)
    return median(took)


def _settle_quietly(core: SchedulerCore, groups: int, size: int, body: Manifest) -> None:
    """Running gangs, already bound: nothing is decided about them."""
    names = core.cluster.room.table.names
    bodies = [{"spec": {**body["spec"], "nodeName": name}} for name in names]
    for number in range(groups):
        name = f"g{number:06}"
        spec = {"minMember": size, "queue": "default"}
        metadata: Manifest = {"creationTimestamp": CREATED}
        members = [Object(Key(GROUP, "default", name), f"u-{name}", metadata, {"spec": spec}, {"phase": "Running"})]
        # As the facts bring them: members share what they have in common.
        pod_metadata = {"creationTimestamp": CREATED, "annotations": {"scheduling.k8s.io/group-name": name}}
        for index in range(size):
            at = (number * size + index) % len(names)
            key = Key("Pod", "default", f"{name}-{index}")
            members.append(Object(key, f"u-{name}-{index}", pod_metadata, bodies[at], {"phase": "Running"}))
        core.fold([Event(None, item) for item in members], NOW)
    for decision in core.decide(NOW, frozenset()):
        core.settle(Outcome("quiet", decision.name, decision.subject, True))
