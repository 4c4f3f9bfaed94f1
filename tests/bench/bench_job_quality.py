"""How well jobs fare, under a heavy-tailed load in virtual time: FIFO, backfill, and backfill with learned run times.

The jobs are made up, with the moments of the public traces of large GPU clusters (Philly, Helios): nine in ten are short, a
few run for days; most ask for one card, one in a hundred for 64 and more; the offered load is the same for every policy.
Every user hands in the same job again and again, and its runs differ by a fifth or so: that is what can be learned. The real
core of gang_scheduler decides. Run it as ``python -m tests.bench job-quality``.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from tests.bench.figures import Figure, percentile

from gang_scheduler.domain.core import SchedulerCore
from kube import Decision, Event, Key, Manifest, Object, Outcome, Verb, rfc3339

START = 1_767_225_600_000
SECOND = 1000
NODES, CARDS = 16, 8
GROUP = "PodGroup.scheduling.volcano.sh"
SIZES = ((1, 0.70), (2, 0.08), (4, 0.08), (8, 0.09), (16, 0.03), (32, 0.015), (64, 0.005))
"""Cards of a job, and how many of all jobs ask for so many."""
LARGE = 32


@dataclass(frozen=True, slots=True)
class Job:
    """``program`` runs again and again; ``seconds`` is how long this run takes."""

    name: str
    program: str
    cards: int
    seconds: int
    arrives: int


@dataclass(slots=True)
class Outcomes:
    """Times in seconds: from arrival to end, and to start, by job."""

    jobs: list[Job]
    ends: dict[str, int] = field(default_factory=dict)
    starts: dict[str, int] = field(default_factory=dict)

    def completions(self) -> list[float]:
        return [self.ends[job.name] - job.arrives for job in self.jobs]

    def mean_hours(self) -> float:
        times = self.completions()
        return sum(times) / len(times) / 3600

    def p99_hours(self) -> float:
        return percentile(self.completions(), 99) / 3600

    def worst_large_wait_hours(self) -> float:
        waits = (self.starts[job.name] - job.arrives for job in self.jobs if job.cards >= LARGE)
        return max(waits, default=0) / 3600

    def unfairness(self) -> float:
        """The 99th percentile of finish-time fairness: completion by what it would be on an equal part of the cluster.

        A job's part is that of one program among those that are present on average, at least what it asks for.
        """
        span = max(self.ends.values()) - min(job.arrives for job in self.jobs)
        present = max(1.0, sum(self.completions()) / span)
        part = NODES * CARDS / present
        return percentile(
            [(self.ends[job.name] - job.arrives) / (job.seconds * max(1.0, job.cards / part)) for job in self.jobs], 99
        )


def trace(count: int, load: float, seed: int) -> list[Job]:
    """So many jobs that ask together for ``load`` of the cluster's time."""
    random = Random(seed)
    programs = [(f"p{number:03}", _size(random), _length(random)) for number in range(max(1, count // 12))]
    runs = []
    for number in range(count):
        program, cards, length = programs[random.randrange(len(programs))]
        runs.append((f"{program}-{10_000 + number}", program, cards, max(30, int(length * random.uniform(0.8, 1.2)))))
    work = sum(cards * seconds for _, _, cards, seconds in runs)
    mean_gap = work / (NODES * CARDS * load) / count
    found, at = [], 0.0
    for name, program, cards, seconds in runs:
        at += random.expovariate(1 / mean_gap)
        found.append(Job(name, program, cards, seconds, int(at)))
    return found


def _size(random: Random) -> int:
    draw = random.random()
    for cards, part in SIZES:
        draw -= part
        if draw < 0:
            return cards
    return 1


def _length(random: Random) -> float:
    """Log-normal: half below a quarter of an hour, the mean at about two hours, cut at two days."""
    return min(random.lognormvariate(6.8, 1.9), 172_800)


@dataclass(slots=True)
class Simulation:
    """One core, one trace. ``stated`` lets owners say how long their jobs run, as they do not where it is learned."""

    core: SchedulerCore
    jobs: list[Job]
    stated: bool = False
    objects: dict[Key, Object] = field(default_factory=dict)
    outcomes: Outcomes = field(init=False)
    _running: list[tuple[int, str]] = field(default_factory=list)

    def run(self) -> Outcomes:
        """All jobs to their end."""
        self.outcomes = Outcomes(self.jobs)
        self._put([_node(number) for number in range(NODES)], 0)
        payload = {"queues": {"default": {}}}
        self.core.hear("queue_manager", Decision("EntitlementsComputed", Key("", "", ""), payload=payload))
        by_name = {job.name: job for job in self.jobs}
        taken = 0
        while taken < len(self.jobs) or self._running:
            now = min(self._next_times(taken))
            batch: list[Object] = []
            while taken < len(self.jobs) and self.jobs[taken].arrives <= now:
                batch += self._objects_of(self.jobs[taken])
                taken += 1
            ended = []
            while self._running and self._running[0][0] <= now:
                ended.append(by_name[heapq.heappop(self._running)[1]])
            self._end(ended, now)
            self._put(batch, now)
            self._settle(now, by_name)
        return self.outcomes

    def _next_times(self, taken: int) -> Iterator[int]:
        if taken < len(self.jobs):
            yield self.jobs[taken].arrives
        if self._running:
            yield self._running[0][0]
            deadline = self.core.deadline()
            if deadline is not None:
                last = self.core.claims.now
                at = -(-max(deadline, last + SECOND) // SECOND) - START // SECOND
                yield at

    def _put(self, items: list[Object], now: int) -> None:
        if items:
            self.objects.update((item.key, item) for item in items)
            self.core.fold([Event(None, item) for item in items], START + now * SECOND)

    def _objects_of(self, job: Job) -> list[Object]:
        marks = {"tidegate.dev/running-estimate": f"{job.seconds}s"} if self.stated else {}
        at = rfc3339(START + job.arrives * SECOND)
        pods = max(1, job.cards // CARDS)
        spec: Manifest = {"minMember": pods, "queue": "default"}
        metadata = {"creationTimestamp": at, "annotations": marks}
        found = [
            Object(Key(GROUP, "default", job.name), f"g-{job.name}", metadata, {"spec": spec}, {"phase": "Inqueue"})
        ]
        requests = {"requests": {"nvidia.com/gpu": min(job.cards, CARDS)}}
        body = {"spec": {"containers": [{"name": "c", "resources": requests}], "schedulerName": "tidegate"}}
        owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": job.name, "uid": job.name}
        for number in range(pods):
            names = {"scheduling.k8s.io/group-name": job.name}
            mine = {"creationTimestamp": at, "annotations": names, "ownerReferences": [{**owner, "controller": True}]}
            name = f"{job.name}-{number}"
            found.append(Object(Key("Pod", "default", name), f"u-{name}", mine, body, {"phase": "Pending"}))
        return found

    def _pods(self, job: Job) -> list[Key]:
        return [Key("Pod", "default", f"{job.name}-{number}") for number in range(max(1, job.cards // CARDS))]

    def _end(self, jobs: list[Job], now: int) -> None:
        for job in jobs:
            self.outcomes.ends[job.name] = now
            events, gone = [], []
            for key in self._pods(job):
                old = self.objects.pop(key)
                new = old.changed(status={**old.status, "phase": "Succeeded"})
                events.append(Event(old, new))
                gone.append(Event(new, None))
            self.core.fold(events, START + now * SECOND)
            gone.append(Event(self.objects.pop(Key(GROUP, "default", job.name)), None))
            self.core.fold(gone, START + now * SECOND)

    def _settle(self, now: int, by_name: dict[str, Job]) -> None:
        moment = START + now * SECOND
        while made := self.core.decide(moment, frozenset()):
            for number, decision in enumerate(made):
                self.core.assume(str(number), decision)
            for number, decision in enumerate(made):
                self.core.fold(self._carried_out(decision, now, by_name), moment)
                self.core.settle(Outcome(str(number), decision.name, decision.subject, True))

    def _carried_out(self, decision: Decision, now: int, by_name: dict[str, Job]) -> list[Event]:
        events = []
        for mutation in decision.mutations:
            old = self.objects[mutation.key]
            if mutation.verb is Verb.BIND:
                name = old.annotations["scheduling.k8s.io/group-name"]
                if name not in self.outcomes.starts:
                    self.outcomes.starts[name] = now
                    heapq.heappush(self._running, (now + by_name[name].seconds, name))
                status = {"phase": "Running", "startTime": rfc3339(START + now * SECOND)}
                new = old.changed(body={**old.body, "spec": {**old.spec, "nodeName": mutation.node}}, status=status)
            else:
                new = old.changed(status={**old.status, **(mutation.patch or {})})
            self.objects[mutation.key] = new
            events.append(Event(old, new))
        return events


def _node(number: int) -> Object:
    status = {
        "allocatable": {"cpu": 1000, "pods": 110, "nvidia.com/gpu": CARDS},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return Object(Key("Node", "", f"node-{number:02}"), f"node-{number}", {}, {"spec": {}}, status)


POLICIES = {
    "first in, first out": (lambda: SchedulerCore(strict_fifo=True, backfill=False), False),
    "greedy backfill, no reservation": (lambda: SchedulerCore(backfill=False), False),
    "reservation, run times learned": (SchedulerCore, False),
    "reservation, run times stated": (SchedulerCore, True),
}


async def job_quality(count: int = 1500, load: float = 0.9, seed: int = 7) -> list[Figure]:
    """The table: for each policy mean and p99 completion, the worst wait of a large job, and fairness."""
    jobs = trace(count, load, seed)
    found: list[Figure] = []
    base: Outcomes | None = None
    for title, (core, stated) in POLICIES.items():
        outcomes = Simulation(core(), jobs, stated).run()
        base = base or outcomes
        for what, value, before in (
            ("mean completion", outcomes.mean_hours(), base.mean_hours()),
            ("p99 completion", outcomes.p99_hours(), base.p99_hours()),
            ("worst wait of a large job", outcomes.worst_large_wait_hours(), base.worst_large_wait_hours()),
        ):
            words = "" if base is outcomes else f"first in, first out: {before:.1f} h"
            found.append(
                Figure(f"{title}: {what}", value, "h", reference=words, ratio=value / before if before else None)
            )
        words = "" if base is outcomes else f"first in, first out: {base.unfairness():.1f}"
        found.append(Figure(f"{title}: p99 of finish-time fairness", outcomes.unfairness(), "", reference=words))
    return found
