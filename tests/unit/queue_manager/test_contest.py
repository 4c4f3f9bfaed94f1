"""Who is given quota, and in which order: the contest against plain rounds over sorted lists."""

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from kube import Key
from queue_manager.domain.admitting.contest import Contest
from queue_manager.domain.admitting.topology_gate import TopologyGate
from queue_manager.domain.cohorts.cohort_books import CohortBooks
from queue_manager.domain.cohorts.cohort_tree import Node, grow
from queue_manager.domain.quotas.cluster_queue import ClusterQueue, Flavor, LocalQueue, QuotaSpec, ResourceGroup
from queue_manager.domain.workloads.job_templates import JobTemplates
from queue_manager.domain.workloads.workload import Constraints, Shape, Workload

PLACE = ("f", "cpu")


@dataclass(frozen=True)
class Job:
    name: str
    queue: str
    cpu: int
    priority: int
    created: int

    @property
    def order(self) -> tuple[int, int, str]:
        return -self.priority, self.created, self.name


def cluster_queue(name: str, cohort: str, nominal: int, borrowing: int | None, strict: bool) -> ClusterQueue:
    limits = {} if borrowing is None or not cohort else {PLACE: borrowing}
    quota = QuotaSpec((ResourceGroup(("cpu",), ("f",)),), {PLACE: nominal}, limits, covered=frozenset({"cpu"}))
    return ClusterQueue(name, "", cohort, quota, strict, {})


def books_of(queues: list[ClusterQueue], jobs: list[Job]) -> CohortBooks:
    books = CohortBooks(flavors={"f": Flavor("f")}, renewed=True)
    for queue in queues:
        books.queues[queue.name] = queue
        books.local["default", queue.name] = LocalQueue("default", queue.name, "", queue.name)
    for job in jobs:
        shape = Shape(job.priority, (("cpu", job.cpu), ("pods", 1)), Constraints())
        key = Key("Pod", "default", job.name)
        books.put(Workload(key, job.name, job.queue, shape, f"{job.created:03}"))
    books.renew()
    return books


def plainly(queues: list[ClusterQueue], jobs: list[Job], fair: bool) -> list[str]:
    """Rounds: the first of every queue that has not failed; in order, each against what is left. Until nobody is left."""
    tree = grow({queue.name: queue for queue in queues}, {})
    waiting = {
        queue.name: sorted((job for job in jobs if job.queue == queue.name), key=lambda job: job.order)
        for queue in queues
    }
    admitted: list[str] = []
    failed: set[str] = set()
    while True:
        heads = []
        for queue in queues:
            node = tree.queues[queue.name]
            for job in waiting[queue.name]:
                if job.name in failed:
                    continue
                if job.cpu <= node.available(PLACE):
                    heads.append(job)
                    break
                if queue.strict:
                    break
                failed.add(job.name)
        if not heads:
            return admitted
        left = list(heads)
        while left:
            job = best(left, tree.queues, fair)
            left.remove(job)
            node = tree.queues[job.queue]
            if job.cpu <= node.available(PLACE):
                node.take(PLACE, job.cpu)
                waiting[job.queue].remove(job)
                admitted.append(job.name)


def best(heads: list[Job], nodes: dict[str, Node], fair: bool) -> Job:
    """Who is served next. What a head has to borrow does not change while other queues are served."""
    if not fair:
        return (
            heads[0]
            if len(heads) == 1
            else min(heads, key=lambda job: (nodes[job.queue].borrow_height(PLACE, job.cpu), job.order))
        )
    return min(
        heads,
        key=lambda job: (
            nodes[job.queue].borrow_height(PLACE, job.cpu) > 0,
            nodes[job.queue].share({PLACE: job.cpu}),
            job.order,
        ),
    )


QUEUES = st.tuples(
    *[
        st.builds(
            cluster_queue,
            st.just(name),
            st.just("team"),
            st.integers(0, 8),
            st.none() | st.integers(0, 4),
            st.booleans(),
        )
        for name in "abc"
    ]
)
JOBS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 5), st.integers(0, 2), st.integers(0, 3)), max_size=14)


@settings(max_examples=300, deadline=None)
@given(QUEUES, JOBS, st.booleans())
def test_the_contest_admits_whom_plain_rounds_admit_in_the_same_order(
    queues: tuple[ClusterQueue, ...], made: list[tuple[str, int, int, int]], fair: bool
) -> None:
    jobs = [Job(f"j{number:02}", *values) for number, values in enumerate(made)]
    books = books_of(list(queues), jobs)
    contest = Contest(books, TopologyGate(books, JobTemplates()), fair, {})
    found = [entry.workload.key.name for entry in contest.run([queue.name for queue in queues], frozenset())]
    assert found == plainly(list(queues), jobs, fair)


def test_a_busy_head_lets_its_queue_rest() -> None:
    """A decision about the head is on its way: those behind it wait for its outcome, other queues do not."""
    queues = [cluster_queue("a", "", 4, None, False), cluster_queue("b", "", 4, None, False)]
    jobs = [Job("first", "a", 1, 1, 0), Job("second", "a", 1, 0, 0), Job("other", "b", 1, 0, 0)]
    books = books_of(queues, jobs)
    resting: dict[str, None] = {}
    contest = Contest(books, TopologyGate(books, JobTemplates()), False, resting)
    found = [entry.workload.key.name for entry in contest.run(["a", "b"], {Key("Pod", "default", "first")})]
    assert found == ["other"]
    assert list(resting) == ["a"]
