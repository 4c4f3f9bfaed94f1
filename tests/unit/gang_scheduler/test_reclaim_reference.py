"""Reclaim from several queues against the plain rule: of all sets that leave every queue its due, the cheapest one that is enough."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

QUIET = settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
GIVERS = ("qa", "qb", "qc")
SHARE_UNIT = 1_000_000_000


@dataclass(frozen=True)
class Pod:
    """A running pod of a queue; ``gang`` is its own name where it has none."""

    name: str
    queue: str
    node: int
    cpu: int
    priority: int
    gang: str


@dataclass(frozen=True)
class Plain:
    """A cluster in plain numbers: the cpus of the nodes, the minimum of each gang, what is due to each queue and its priority."""

    nodes: list[int]
    pods: list[Pod]
    least: dict[str, int]
    due: dict[str, int]
    rank: dict[str, int]

    def sets(self) -> Iterator[tuple[Pod, ...]]:
        """All sets of pods that may go."""
        for count in range(1, len(self.pods) + 1):
            for gone in combinations(self.pods, count):
                if self.keeps_gangs(gone) and self.keeps_dues(gone):
                    yield gone

    def keeps_gangs(self, gone: tuple[Pod, ...]) -> bool:
        return all(self.left(gang, gone) in (0, *range(self.least[gang], 9)) for gang in {pod.gang for pod in gone})

    def keeps_dues(self, gone: tuple[Pod, ...]) -> bool:
        return all(self.above(queue, gone) >= 0 for queue in {pod.queue for pod in gone})

    def left(self, gang: str, gone: tuple[Pod, ...]) -> int:
        return sum(pod.gang == gang and pod not in gone for pod in self.pods)

    def above(self, queue: str, gone: tuple[Pod, ...]) -> int:
        used = sum(pod.cpu for pod in self.pods if pod.queue == queue and pod not in gone)
        return used - self.due[queue]

    def fits(self, gone: tuple[Pod, ...], cpu: int, copies: int) -> bool:
        free = [
            size - sum(p.cpu for p in self.pods if p.node == n and p not in gone) for n, size in enumerate(self.nodes)
        ]
        return sum(room // cpu for room in free) >= copies

    def degree(self, queue: str, gone: tuple[Pod, ...]) -> int:
        return max(0, self.above(queue, gone)) * 1000 * SHARE_UNIT // max(1, self.due[queue] * 1000)

    def depth(self, gone: tuple[Pod, ...], open_to: set[str]) -> int:
        """How far a queue is below another one of its rank before its last lot goes; the worst of all queues that give."""
        worst = -1
        for queue in {pod.queue for pod in gone}:
            rivals = [self.degree(q, ()) for q in open_to if q != queue and self.rank[q] == self.rank[queue]]
            mine = tuple(pod for pod in gone if pod.queue == queue)
            before = max(self.degree(queue, tuple(set(mine) - set(lot))) for lot in self.lots(mine, gone))
            if max(rivals, default=0) > before:
                worst = max(worst, max(rivals) - before)
        return worst

    def lots(self, mine: tuple[Pod, ...], gone: tuple[Pod, ...]) -> list[tuple[Pod, ...]]:
        """Gangs that end whole, others pod by pod."""
        gangs = {pod.gang for pod in mine}
        whole = [gang for gang in gangs if not self.left(gang, gone)]
        return [
            *(tuple(pod for pod in mine if pod.gang == gang) for gang in whole),
            *((pod,) for pod in mine if pod.gang not in whole),
        ]

    def cost(self, gone: tuple[Pod, ...]) -> tuple[Any, ...]:
        """Late queues, important pods, whether gangs end, queues out of turn, whole gangs, gangs, pods."""
        rank, priority = max(self.rank[pod.queue] for pod in gone), max(pod.priority for pod in gone)
        gangs = {pod.gang for pod in gone}
        whole = [gang for gang in gangs if not self.left(gang, gone)]
        open_to = {
            pod.queue
            for pod in self.pods
            if self.rank[pod.queue] <= rank and pod.priority <= priority and self.above(pod.queue, ()) > 0
        }
        return rank, priority, bool(whole), self.depth(gone, open_to), len(whole), len(gangs), len(gone)


def draw(sizes: list[int], raw: list[Any], least: int, dues: Any, ranks: Any) -> Plain:
    """As many of the drawn pods as there is room for; those of one queue in a gang are of one priority."""
    pods: list[Pod] = []
    for number, (queue, node, cpu, priority, gang) in enumerate(raw):
        where = node % len(sizes)
        if sum(pod.cpu for pod in pods if pod.node == where) + cpu <= sizes[where]:
            name = f"p{number}"
            pods.append(Pod(name, GIVERS[queue], where, cpu, 0 if gang else priority, f"g{queue}" if gang else name))
    names = {pod.gang for pod in pods}
    minima = {name: min(least, sum(pod.gang == name for pod in pods)) if name[0] == "g" else 1 for name in names}
    return Plain(sizes, pods, minima, dict(zip(GIVERS, dues, strict=True)), dict(zip(GIVERS, ranks, strict=True)))


def play(toy: Any, plain: Plain, cpu: int, copies: int) -> tuple[Pod, ...]:
    """Who is evicted for a gang of ``copies`` pods of a queue that deserves them."""
    total = sum(plain.nodes)
    toy.queues = {
        queue: {"deserved": {"cpu": due}, "capability": {"cpu": total}, "priority": plain.rank[queue]}
        for queue, due in plain.due.items()
    } | {"taker": {"deserved": {"cpu": total}}}
    for index, size in enumerate(plain.nodes):
        toy.node(f"n{index}", cpu=size)
    for gang, least in plain.least.items():
        if gang[0] == "g":
            queue = GIVERS[int(gang[1:])]
            toy.group(gang, least, phase="Running", queue=queue)
    for pod in plain.pods:
        where: Any = {"group": pod.gang} if pod.gang[0] == "g" else {"queue": pod.queue}
        toy.pods(pod.name, cpu=pod.cpu, priority=pod.priority, node=f"n{pod.node}", **where)
    toy.group("new", copies, queue="taker")
    for number in range(copies):
        toy.pods(f"new-{number}", group="new", cpu=cpu)
    toy.settle()
    gone = tuple(pod for pod in plain.pods if pod.name in toy.evicted)
    assert len(toy.bound("new")) == (copies if gone or plain.fits((), cpu, copies) else 0)
    return gone


PODS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(1, 2), st.integers(0, 1), st.booleans()),
    min_size=8,
    max_size=10,
)


@QUIET
@given(
    st.lists(st.integers(2, 4), min_size=2, max_size=4),
    PODS,
    st.integers(1, 3),
    st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)),
    st.sampled_from([(0, 0, 0), (0, 0, 1)]),
    st.integers(1, 3),
    st.integers(1, 5),
)
def test_the_cheapest_set_of_several_queues_goes(
    new_toy: Any, sizes: Any, raw: Any, least: int, dues: Any, ranks: Any, cpu: int, copies: int
) -> None:
    plain = draw(sizes, raw, least, dues, ranks)
    gone = play(new_toy(), plain, cpu, copies)
    enough = [chosen for chosen in plain.sets() if plain.fits(chosen, cpu, copies)]
    if plain.fits((), cpu, copies) or not enough:
        assert gone == ()
        return
    assert gone in enough, "every queue keeps its due, every gang its minimum"
    assert plain.cost(gone) == min(plain.cost(chosen) for chosen in enough)
