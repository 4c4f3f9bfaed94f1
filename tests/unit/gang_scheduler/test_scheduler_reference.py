"""The fast placement against the simple one: the same decisions on random clusters, and what must always hold."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kube import Event

QUIET = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@dataclass
class Node:
    """A node of the simple scheduler: cpu and pods as plain numbers."""

    name: str
    cpu: int
    pods: int
    disk: str
    used: int = 0
    taken: int = 0


@dataclass
class Job:
    """A gang: its least number of members, and for each member its cpu and the disk that it wants ("" for any)."""

    name: str
    queue: str
    priority: int
    least: int
    members: list[tuple[int, str]]
    placed: dict[int, str] = field(default_factory=dict)

    def waiting(self) -> list[int]:
        return [number for number in range(len(self.members)) if number not in self.placed]


@dataclass
class Simple:
    """One pod after the other, each on the fullest node that fits; no cache, no batches, no index."""

    nodes: list[Node]
    jobs: list[Job]
    caps: dict[str, int]
    used: dict[str, int] = field(default_factory=dict)

    def best(self, cpu: int, disk: str) -> Node | None:
        fitting = [
            node
            for node in self.nodes
            if node.used + cpu <= node.cpu and node.taken < node.pods and disk in ("", node.disk)
        ]
        if not fitting:
            return None
        return min(fitting, key=lambda node: (-self.score(node, cpu), node.name))

    def score(self, node: Node, cpu: int) -> int:
        share = (node.used + cpu) / node.cpu if cpu else (node.taken + 1) / node.pods
        return round(share * 1_000_000)

    def put(self, job: Job, number: int, node: Node, sign: int = 1) -> None:
        cpu = job.members[number][0]
        node.used += sign * cpu
        node.taken += sign
        self.used[job.queue] = self.used.get(job.queue, 0) + sign * cpu
        if sign > 0:
            job.placed[number] = node.name
        else:
            del job.placed[number]

    def allowed(self, job: Job, cpu: int) -> bool:
        return not cpu or self.used.get(job.queue, 0) + cpu <= self.caps[job.queue]

    def together(self, job: Job, numbers: list[int]) -> bool:
        """Place all or none; shapes that fit fewer nodes first."""
        if not self.allowed(job, sum(job.members[number][0] for number in numbers)):
            return False

        def scarcity(number: int) -> tuple[int, int, int]:
            cpu, disk = job.members[number]
            places = [self.copies(node, cpu, disk) for node in self.nodes]
            first = min(other for other in numbers if job.members[other] == job.members[number])
            return sum(1 for count in places if count), sum(places), first

        rank = {number: scarcity(number) for number in numbers}
        done: list[tuple[int, Node]] = []
        for number in sorted(numbers, key=lambda item: (rank[item], item)):
            node = self.best(*job.members[number])
            if node is None:
                for undo, where in done:
                    self.put(job, undo, where, -1)
                return False
            self.put(job, number, node)
            done.append((number, node))
        return True

    def copies(self, node: Node, cpu: int, disk: str) -> int:
        if disk not in ("", node.disk):
            return 0
        by_cpu = (node.cpu - node.used) // cpu if cpu else node.pods
        return max(0, min(by_cpu, node.pods - node.taken))

    def run(self) -> None:
        """Queues by share, jobs by priority and name, minima before surplus; after each success everything is looked at anew."""
        failed: set[tuple[str, int, tuple[int, str]]] = set()
        while True:
            turns = [(self.used.get(job.queue, 0) * 1000, job.queue, *self.place(job), job) for job in self.jobs]
            turns = [turn for turn in turns if self.untried(turn[-1], failed)]
            if not turns:
                return
            job = min(turns, key=lambda turn: turn[:-1])[-1]
            numbers = self.untried(job, failed)
            assert numbers is not None
            if not self.together(job, numbers):
                failed.add((job.name, len(job.placed) and 1, job.members[numbers[0]] if job.placed else (0, "")))

    def place(self, job: Job) -> tuple[int, int, str]:
        return -job.priority, int(len(job.placed) >= job.least), job.name

    def untried(self, job: Job, failed: set[Any]) -> list[int] | None:
        """The members to place next: the minimum, or one more."""
        if not job.placed:
            return None if (job.name, 0, (0, "")) in failed else list(range(job.least))
        return next(([n] for n in job.waiting() if (job.name, 1, job.members[n]) not in failed), None)


NODES = st.lists(
    st.tuples(st.integers(1, 8), st.integers(1, 6), st.sampled_from(["ssd", "hdd"])), min_size=1, max_size=6
)
MEMBER = st.tuples(st.integers(0, 4), st.sampled_from(["", "", "ssd", "hdd"]))
JOBS = st.lists(
    st.tuples(
        st.sampled_from(["qa", "qb"]),
        st.integers(0, 2),
        st.integers(1, 5),
        st.integers(0, 3),
        st.lists(MEMBER, min_size=1, max_size=2),
    ),
    min_size=1,
    max_size=7,
)
CAPS = st.tuples(st.integers(2, 30), st.integers(2, 30))


def draw_jobs(raw: list[Any]) -> list[Job]:
    """Jobs whose members have one shape where they have a choice, as which of several shapes is left out is not laid down."""
    jobs = []
    for index, (queue, priority, least, surplus, kinds) in enumerate(raw):
        count = least + (surplus if len(kinds) == 1 else 0)
        members = [kinds[number % len(kinds)] for number in range(count)]
        jobs.append(Job(f"job-{index}", queue, priority, least, members))
    return jobs


def build(toy: Any, nodes: list[Any], jobs: list[Job], caps: tuple[int, int]) -> Simple:
    """The same cluster for both."""
    toy.queues = {
        name: {"capability": {"cpu": cap}, "deserved": {"cpu": 10}}
        for name, cap in zip(("qa", "qb"), caps, strict=True)
    }
    for index, (cpu, pods, disk) in enumerate(nodes):
        toy.node(f"n{index}", cpu=cpu, pods=pods, labels={"disk": disk})
    for job in jobs:
        toy.group(job.name, job.least, queue=job.queue)
        for number, (cpu, disk) in enumerate(job.members):
            parts = {"nodeSelector": {"disk": disk}} if disk else {}
            toy.pods(f"{job.name}-{number}", group=job.name, cpu=cpu, priority=job.priority, **parts)
    plain = [Node(f"n{index}", cpu, pods, disk) for index, (cpu, pods, disk) in enumerate(nodes)]
    return Simple(plain, jobs, dict(zip(("qa", "qb"), caps, strict=True)))


@QUIET
@given(NODES, JOBS, CAPS)
def test_the_fast_placement_decides_as_the_simple_one(new_toy: Any, nodes: Any, raw: Any, caps: Any) -> None:
    toy, jobs = new_toy(checks=False), draw_jobs(raw)
    simple = build(toy, nodes, jobs, caps)
    toy.entitle()
    decisions = toy.core.decide(toy.now, frozenset())
    simple.run()
    chosen = {m.key.name: m.node for decision in decisions for m in decision.mutations if m.node}
    assert chosen == {f"{job.name}-{number}": node for job in jobs for number, node in job.placed.items()}


@QUIET
@given(NODES, st.lists(st.tuples(MEMBER, st.integers(0, 2)), min_size=1, max_size=12), st.integers(2, 30))
def test_pods_without_a_gang_are_placed_as_the_simple_scheduler_does_it(
    new_toy: Any, nodes: Any, raw: Any, cap: int
) -> None:
    """Of many shapes, priorities and node selectors, in a queue with a limit; some find no place."""
    toy = new_toy()
    jobs = [Job(f"p{number:02}", "default", priority, 1, [kind]) for number, (kind, priority) in enumerate(raw)]
    simple = build(toy, nodes, [], (cap, cap))
    toy.queues = {"default": {"capability": {"cpu": cap}}}
    simple.jobs, simple.caps = jobs, {"default": cap}
    for job in jobs:
        cpu, disk = job.members[0]
        parts = {"nodeSelector": {"disk": disk}} if disk else {}
        toy.pods(job.name, cpu=cpu, priority=job.priority, **parts)
    toy.settle()
    simple.run()
    assert {name: toy.where(name) for name in toy.bound()} == {job.name: job.placed[0] for job in jobs if job.placed}


@QUIET
@given(NODES, JOBS, CAPS, st.integers(0, 1000))
def test_gangs_are_whole_caps_hold_and_no_node_is_overfull(
    new_toy: Any, nodes: Any, raw: Any, caps: Any, seed: int
) -> None:
    toy, jobs = new_toy(), draw_jobs(raw)
    build(toy, nodes, jobs, caps)
    for step in range(3):
        toy.settle()
        for job in jobs:
            bound = [name for name in toy.bound() if name.startswith(job.name + "-")]
            assert not bound or step or len(bound) >= job.least
        for index, (cpu, pods, _) in enumerate(nodes):
            here = [name for name in toy.bound() if toy.where(name) == f"n{index}" and alive(toy, name)]
            assert len(here) <= pods
            assert sum(cpu_of(toy, name) for name in here) <= cpu
        names = toy.bound()
        if names:
            toy.finish(names[seed % len(names)])


@QUIET
@given(NODES, JOBS, CAPS, st.lists(st.integers(0, 1000), min_size=1, max_size=8))
def test_trying_only_those_that_may_have_become_placeable_is_like_trying_all(
    new_toy: Any, nodes: Any, raw: Any, caps: Any, steps: list[int]
) -> None:
    """The second cluster is started anew before every decision, so nobody in it is left out."""
    toy, again = new_toy(), new_toy(checks=False)
    build(toy, nodes, draw_jobs(raw), caps)
    build(again, nodes, draw_jobs(raw), caps)
    for step in steps:
        toy.settle()
        restart(again)
        again.settle()
        assert {name: toy.where(name) for name in toy.bound()} == {name: again.where(name) for name in again.bound()}
        change(toy, step, nodes)
        change(again, step, nodes)


def change(toy: Any, step: int, nodes: list[Any]) -> None:
    """One of: a pod finishes, a pod goes, a node grows, a queue's cap is raised."""
    names = toy.bound()
    match step % 4:
        case 0 if names:
            toy.finish(names[step % len(names)])
        case 1 if names:
            toy.delete(toy.pod(names[step % len(names)]).key)
        case 2:
            cpu, pods, disk = nodes[step % len(nodes)]
            number = step % len(nodes)
            toy.node(f"n{number}", cpu=cpu + 3, pods=pods + 1, labels={"disk": disk, "zone": f"z{number % 2}"})
        case _:
            toy.queues["qa"]["capability"]["cpu"] += 2
            toy.entitle()


def restart(toy: Any) -> None:
    """The scheduler starts with nothing in memory but its private state and reads the facts."""
    remembered = toy.core.remember()
    toy.core = type(toy.core)()
    if remembered is not None:
        toy.core.restore(remembered)
    toy.fold([Event(None, item) for item in toy.store.objects.values()])
    toy.entitle()


def alive(toy: Any, name: str) -> bool:
    return toy.pod(name).status["phase"] not in ("Succeeded", "Failed")


def cpu_of(toy: Any, name: str) -> int:
    return int(toy.pod(name).spec["containers"][0]["resources"]["requests"]["cpu"])


@QUIET
@given(st.lists(st.integers(0, 4), min_size=1, max_size=5), st.integers(1, 3), st.integers(1, 8), st.integers(1, 3))
def test_a_gang_of_one_shape_is_placed_whenever_it_can_be(
    new_toy: Any, sizes: list[int], cpu: int, least: int, skew: int
) -> None:
    """With a spread over three zones: the most that fits is counted by hand."""
    toy = new_toy()
    for index, size in enumerate(sizes):
        toy.node(f"n{index}", cpu=size, labels={"zone": f"z{index % 3}"})
    zones = [sum(size // cpu for size in sizes[start::3]) for start in range(min(3, len(sizes)))]
    selector = {"labelSelector": {"matchLabels": {"app": "g"}}}
    rule = {"maxSkew": skew, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **selector}
    toy.group("g", least)
    toy.pods("g", least, group="g", cpu=cpu, labels={"app": "g"}, topologySpreadConstraints=[rule])
    toy.settle()
    possible = sum(min(zone, min(zones) + skew) for zone in zones) >= least
    assert bool(toy.bound()) == possible


RULES = st.sampled_from(["apart-host", "apart-zone", "near-zone", "spread-zone", "spread-host", "port", "plain"])
WORKLOADS = st.lists(
    st.tuples(RULES, st.sampled_from("xy"), st.sampled_from("xy"), st.integers(1, 4), st.integers(0, 2)),
    min_size=1,
    max_size=5,
)


@QUIET
@given(NODES, WORKLOADS, st.lists(st.integers(0, 1000), min_size=1, max_size=6))
def test_what_pods_ask_of_each_other_holds_at_every_step(
    new_toy: Any, nodes: Any, workloads: Any, steps: list[int]
) -> None:
    """Gangs with every kind of rule: the books stay right, the rules hold, and a restart changes nothing."""
    toy, again = new_toy(), new_toy(checks=False)
    for cluster in (toy, again):
        cluster.queues = {"default": {}, "qa": {"capability": {"cpu": 9}}}
        for index, (cpu, pods, _) in enumerate(nodes):
            cluster.node(f"n{index}", cpu=cpu, pods=pods, labels={"zone": f"z{index % 2}"})
        for index, (rule, own, other, least, cpu) in enumerate(workloads):
            cluster.group(f"g{index}", least)
            cluster.pods(
                f"g{index}-p", least + 1, group=f"g{index}", cpu=cpu, labels={"app": own}, **ruled(rule, other)
            )
    for step in steps:
        toy.settle()
        restart(again)
        again.settle()
        assert {name: toy.where(name) for name in toy.bound()} == {name: again.where(name) for name in again.bound()}
        assert broken_rules(toy) == []
        change(toy, step, nodes)
        change(again, step, nodes)


def ruled(rule: str, app: str) -> dict[str, Any]:
    """The part of a pod spec that asks for ``rule`` towards pods of ``app``."""
    kind, _, where = rule.partition("-")
    selector = {"labelSelector": {"matchLabels": {"app": app}}}
    selector["topologyKey"] = {"host": "kubernetes.io/hostname", "zone": "zone"}.get(where, "")  # type: ignore[assignment]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [selector]}
    match kind:
        case "apart":
            return {"affinity": {"podAntiAffinity": required}}
        case "near":
            return {"affinity": {"podAffinity": required}}
        case "spread":
            return {"topologySpreadConstraints": [{**selector, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]}
        case "port":
            return {
                "hostNetwork": True,
                "initContainers": [],
                "containers": [{"name": "c", "ports": [{"hostPort": 80}]}],
            }
    return {}


def broken_rules(toy: Any) -> list[str]:
    """Pods that are where an anti-affinity of their own forbids them to be, and ports that are there twice."""
    live = [toy.pod(name) for name in toy.bound() if alive(toy, name)]
    found = []
    for pod in live:
        rules = (pod.spec.get("affinity") or {}).get("podAntiAffinity") or {}
        for term in rules.get("requiredDuringSchedulingIgnoredDuringExecution", ()):
            app, key = term["labelSelector"]["matchLabels"]["app"], term["topologyKey"]
            there = [o for o in live if o is not pod and o.labels["app"] == app and place(o, key) == place(pod, key)]
            found += [f"{pod.name} is beside {other.name}" for other in there]
    on_port = [pod.spec["nodeName"] for pod in live if pod.spec.get("hostNetwork")]
    return found + [f"port 80 twice on {node}" for node in on_port if on_port.count(node) > 1]


def place(pod: Any, key: str) -> str:
    """The domain of a pod's node."""
    node = str(pod.spec["nodeName"])
    return f"z{int(node[1:]) % 2}" if key == "zone" else node
