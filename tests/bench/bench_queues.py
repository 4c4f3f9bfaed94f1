"""How many workloads a second queue_manager's core admits, under Kueue's own load; how long the shares of a large tree take.

The load is that of Kueue's ``test/performance/scheduler``: in each ClusterQueue 350 small, 100 medium and 50 large workloads
(1, 5, 20 CPUs for 0.2, 0.5, 1 s), five cohorts of six queues with 20 CPUs each; at large scale ten cohorts of a hundred
queues with 50 workloads each. Time is virtual: measured is the CPU time of the core, from the arrival of a workload to its
end, its Workload object and the statuses of queues included. Run it as ``python -m tests.bench queues``.
"""

import heapq
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from tests.bench.figures import Figure, at_least, at_most

from kube import Decision, Event, Key, Manifest, Object, Outcome, Verb, merge, rfc3339
from queue_manager.domain import QueueCore
from queue_manager.domain.quotas.claims import CLAIMS
from queue_manager.domain.quotas.queue_tree import Queue, QueueTree
from queue_manager.domain.shares.fair_share import deserved, lay_out

START = 1_767_225_600_000
KUEUE = "kueue.x-k8s.io"
STEP_MS = 100


@dataclass(frozen=True, slots=True)
class Class:
    """Workloads of one size: every ``every_ms`` one arrives in each queue, ``count`` in all."""

    name: str
    count: int
    cpu: int
    runs_ms: int
    priority: int
    every_ms: int


BASELINE = (
    Class("small", 350, 1, 200, 50, 100),
    Class("medium", 100, 5, 500, 100, 500),
    Class("large", 50, 20, 1000, 200, 1200),
)
LARGE_SCALE = (
    Class("small", 35, 1, 200, 50, 100),
    Class("medium", 10, 5, 500, 100, 500),
    Class("large", 5, 20, 1000, 200, 1200),
)


@dataclass(slots=True)
class Load:
    """A core under load. ``spent`` counts CPU seconds in the core."""

    core: QueueCore = field(default_factory=QueueCore)
    objects: dict[Key, Object] = field(default_factory=dict)
    spent: float = 0.0
    admitted: int = 0
    makespan_ms: int = 0
    _revision: int = 0

    def run(self, cohorts: int, queues: int, classes: tuple[Class, ...]) -> None:
        """All workloads arrive, are admitted, run, and end."""
        self._put(setting(cohorts, queues))
        arrivals = sorted(arriving(cohorts * queues, classes), key=lambda item: item[0])
        running: list[tuple[int, Key]] = []
        until: dict[Key, int] = {}
        runs_ms = {item.name: item.runs_ms for item in classes}
        now, taken, waiting = START, 0, len(arrivals)
        while waiting or running:
            batch = []
            while taken < len(arrivals) and arrivals[taken][0] <= now:
                batch.append(arrivals[taken][1])
                taken += 1
            self._put(batch, now)
            ended = []
            while running and running[0][0] <= now:
                at, key = heapq.heappop(running)
                if until.get(key) == at:
                    ended.append(key)
                    del until[key]
            self._end(ended, now)
            for key, starts in self._settle(now):
                waiting += -1 if starts else 1
                until.pop(key, None)
                if starts:
                    until[key] = now + runs_ms[key.name.partition("-")[0]]
                    heapq.heappush(running, (until[key], key))
            now += STEP_MS
        self.makespan_ms = now - START

    def _put(self, items: list[Object], now: int = START) -> None:
        if items:
            self.objects.update((item.key, item) for item in items)
            self._timed(lambda: self.core.fold([Event(None, item) for item in items], now))

    def _end(self, keys: list[Key], now: int) -> None:
        over = {"type": "Finished", "status": "True", "reason": "Succeeded", "message": ""}
        events = []
        for key in keys:
            old = self.objects[key]
            new = self.objects[key] = old.changed(status=merge(old.status, {"conditions": [over]}))
            events.append(Event(old, new))
        if events:
            self._timed(lambda: self.core.fold(events, now))

    def _settle(self, now: int) -> Iterator[tuple[Key, bool]]:
        """Who starts (True), and who is sent away (False)."""
        while True:
            made: list[Decision] = []
            self._timed(lambda: made.extend(self.core.decide(now, frozenset())))  # noqa: B023
            if not made:
                return
            for number, decision in enumerate(made):
                self._timed(lambda: self.core.assume(f"d{number}", decision))  # noqa: B023
            events = self._carried_out(made)
            self._timed(lambda: self.core.fold(events, now))  # noqa: B023
            for number, decision in enumerate(made):
                outcome = Outcome(f"d{number}", decision.name, decision.subject, True)
                self._timed(lambda: self.core.settle(outcome))  # noqa: B023
                if decision.name in ("WorkloadAdmitted", "WorkloadRequeued"):
                    self.admitted += decision.name == "WorkloadAdmitted"
                    yield decision.subject, decision.name == "WorkloadAdmitted"

    def _carried_out(self, decisions: list[Decision]) -> list[Event]:
        """One change set: what the gateway makes of all of them."""
        before: dict[Key, Object] = {}
        for mutation in [mutation for decision in decisions for mutation in decision.mutations]:
            old, patch = self.objects.get(mutation.key), mutation.patch or {}
            if old is None or mutation.verb not in (Verb.PATCH, Verb.STATUS):
                continue
            before.setdefault(mutation.key, old)
            if mutation.verb is Verb.PATCH:
                new = old.changed(metadata=merge(old.metadata, patch.get("metadata") or {}))
            else:
                new = old.changed(status=merge(old.status, patch))
            self.objects[mutation.key] = new
        return [Event(old, self.objects[key]) for key, old in before.items()]

    def _timed(self, action: object) -> None:
        began = time.process_time()
        action()  # type: ignore[operator]
        self.spent += time.process_time() - began


def setting(cohorts: int, queues: int) -> list[Object]:
    """The flavor, ClusterQueues and LocalQueues."""
    found = [_made("ResourceFlavor", "", "f", {})]
    for number in range(cohorts * queues):
        resource = {"name": "cpu", "nominalQuota": 20, "borrowingLimit": 100}
        spec = {
            "namespaceSelector": {},
            "cohortName": f"cohort-{number // queues}",
            "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [resource]}]}],
        }
        found.append(_made("ClusterQueue", "", f"q{number}", spec))
        found.append(_made("LocalQueue", "default", f"q{number}", {"clusterQueue": f"q{number}"}))
    return found


def arriving(queues: int, classes: tuple[Class, ...]) -> Iterator[tuple[int, Object]]:
    """Every workload and when it arrives."""
    for each in classes:
        requests = {"requests": {"cpu": each.cpu}}
        template = {"spec": {"containers": [{"name": "c", "resources": requests}]}}
        pod_sets = [{"name": "main", "count": 1, "template": template}]
        for number in range(each.count):
            at = START + number * each.every_ms
            for queue in range(queues):
                spec = {"queueName": f"q{queue}", "priority": each.priority, "podSets": pod_sets, "active": True}
                yield at, _made("Workload", "default", f"{each.name}-{queue}-{number}", spec, at)


def _made(kind: str, namespace: str, name: str, spec: Manifest, at: int = START) -> Object:
    metadata = {"creationTimestamp": rfc3339(at)}
    return Object(Key(f"{kind}.{KUEUE}", namespace, name), f"uid-{kind}-{name}", metadata, {"spec": spec})


def plain(cohorts: int, queues: int, classes: tuple[Class, ...]) -> float:
    """Workloads a second of the plainest loop that keeps the same limits: one number for each cohort, FIFO by priority.

    It reads no objects, finds no flavors, tells nobody anything and sends nobody away.
    """
    began = time.process_time()
    work = [(at, -each.priority, queue) for each in classes for number in range(each.count)
            for at in (number * each.every_ms,) for queue in range(cohorts * queues)]  # fmt: skip
    by_priority = {-each.priority: each for each in classes}
    arrivals, taken, now, admitted = sorted(work), 0, 0, 0
    used, lines = [0] * cohorts, [list[tuple[int, int, int]]() for _ in range(cohorts * queues)]
    running: list[tuple[int, int, int]] = []
    while admitted < len(arrivals):
        while taken < len(arrivals) and arrivals[taken][0] <= now:
            at, priority, queue = arrivals[taken]
            heapq.heappush(lines[queue], (priority, at, taken))
            taken += 1
        while running and running[0][0] <= now:
            _, cohort, cpu = heapq.heappop(running)
            used[cohort] -= cpu
        for queue, line in enumerate(lines):
            cohort = queue // queues
            while line and used[cohort] + by_priority[line[0][0]].cpu <= 20 * queues:
                each = by_priority[heapq.heappop(line)[0]]
                used[cohort] += each.cpu
                heapq.heappush(running, (now + each.runs_ms, cohort, each.cpu))
                admitted += 1
        now += STEP_MS
    return admitted / (time.process_time() - began)


def shares_ms(queues: int = 10_000, tries: int = 15) -> tuple[float, float]:
    """Milliseconds for the shares of a tree of so many queues in two resources: ours, and one level after the other in plain
    Python. The best of ``tries``."""
    tree = QueueTree()
    for number in range(queues):
        parent = f"q{number // 10 - 1}" if number >= 10 else ""
        tree.put(Queue(f"q{number}", f"u{number}", parent=parent, weight=1 + number % 7))
    layout = lay_out(tree, ("cpu", "memory"))
    request = np.zeros(layout.shape, np.int64)
    leaves = [row for name, row in layout.rows.items() if tree.is_leaf(name)]
    request[leaves] = np.random.default_rng(7).integers(0, 64_000, (len(leaves), 2))
    supply = [queues * 10_000, queues * 12_000]
    ours = min(_cpu_ms(lambda: deserved(layout, request, supply, CLAIMS["proportion"])) for _ in range(tries))
    return ours, _cpu_ms(lambda: _filled(tree, layout.rows, request, supply))


def _filled(tree: QueueTree, rows: dict[str, int], request: np.ndarray, supply: list[int]) -> None:  # type: ignore[type-arg]
    """Water-filling in floats, queue by queue: the textbook."""
    wants: dict[str, list[float]] = {}

    def want(name: str) -> list[float]:
        below = [want(child) for child in tree.children_of(name)]
        own = [float(amount) for amount in request[rows[name]]]
        wants[name] = [sum(amounts) for amounts in zip(own, *below, strict=True)]
        return wants[name]

    def fill(name: str, has: list[float]) -> None:
        children = tree.children_of(name)
        given = {child: [0.0] * len(has) for child in children}
        for column, total in enumerate(has):
            left, open_ = total, [child for child in children if wants[child][column] > 0]
            while open_ and left > 1e-6:
                weight = sum(tree.queues[child].weight for child in open_)
                level = left / weight
                full = [c for c in open_ if wants[c][column] - given[c][column] <= level * tree.queues[c].weight]
                for child in full or open_:
                    more = wants[child][column] - given[child][column] if full else level * tree.queues[child].weight
                    given[child][column] += more
                    left -= more
                open_ = [child for child in open_ if child not in full] if full else []
        for child in children:
            fill(child, given[child])

    want("root")
    fill("root", [float(amount) for amount in supply])


def _cpu_ms(action: object) -> float:
    began = time.process_time()
    action()  # type: ignore[operator]
    return 1000 * (time.process_time() - began)


async def queues() -> list[Figure]:
    """The table."""
    found = []
    for title, cohorts, each, classes, goal in (
        ("15,000 workloads, 30 queues, 5 cohorts", 5, 6, BASELINE, 5000),
        ("50,000 workloads, 1,000 queues, 10 cohorts", 10, 100, LARGE_SCALE, 3000),
    ):
        load = Load()
        load.run(cohorts, each, classes)
        bare = plain(cohorts, each, classes)
        reference = f"a plain loop without objects, words and victims: {bare:,.0f}/s"
        rate = load.admitted / load.spent
        found.append(at_least(f"admission: {title}", rate, "a CPU second", goal, reference, bare))
        done = f"the load packed perfectly: {least_seconds(cohorts * each, classes):.0f} s"
        found.append(Figure("until all of it is done", load.makespan_ms / 1000, "s (virtual)", reference=done))
    ours, textbook = shares_ms()
    words = f"water-filling in plain Python: {textbook:.0f} ms"
    found.append(at_most("fair shares of 10,000 queues in a tree", ours, "ms of CPU", 20, words, textbook))
    return found


def least_seconds(queues: int, classes: tuple[Class, ...]) -> float:
    """How long the load takes if every CPU is in use all the time, and no less than until the last has arrived."""
    work = sum(each.count * each.cpu * each.runs_ms for each in classes) * queues
    last = max((each.count - 1) * each.every_ms + each.runs_ms for each in classes)
    return max(work / (20 * queues), last) / 1000
