"""The eviction engine against the plain rule: of all sets of pods that may go, the cheapest one that is enough."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

QUIET = settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@dataclass(frozen=True)
class Pod:
    """A running pod; ``gang`` is its own name where it has none, ``age`` is larger for what is older."""

    name: str
    node: int
    cpu: int
    priority: int
    gang: str
    age: int = 0


@dataclass(frozen=True)
class Plain:
    """A cluster in plain numbers: the cpus of the nodes, the pods, and the minimum of each gang."""

    nodes: list[int]
    pods: list[Pod]
    least: dict[str, int]

    def sets(self, below: int) -> Iterator[tuple[Pod, ...]]:
        """All sets of pods that may go for somebody of priority ``below``."""
        open_to = [pod for pod in self.pods if pod.priority < below]
        for count in range(len(open_to) + 1):
            yield from (chosen for chosen in combinations(open_to, count) if self.keeps_gangs(chosen))

    def keeps_gangs(self, gone: tuple[Pod, ...]) -> bool:
        for gang in {pod.gang for pod in gone}:
            members = [pod for pod in self.pods if pod.gang == gang]
            left = [pod for pod in members if pod not in gone]
            if left and len(left) < self.least[gang]:
                return False
        return True

    def fits(self, gone: tuple[Pod, ...], cpu: int, copies: int) -> bool:
        free = [
            size - sum(p.cpu for p in self.pods if p.node == n and p not in gone) for n, size in enumerate(self.nodes)
        ]
        return sum(max(0, room) // cpu for room in free) >= copies

    def cost(self, gone: tuple[Pod, ...]) -> tuple[Any, ...]:
        """Important pods, whole gangs, gangs, pods."""
        gangs = {pod.gang for pod in gone}
        whole = [gang for gang in gangs if all(pod in gone for pod in self.pods if pod.gang == gang)]
        return max((pod.priority for pod in gone), default=-1), len(whole), len(gangs), len(gone)


def play(toy: Any, plain: Plain, cpu: int, copies: int, priority: int) -> tuple[Pod, ...]:
    """Who is evicted for a gang of ``copies`` pods; nobody may be evicted in vain or twice."""
    for index, size in enumerate(plain.nodes):
        toy.node(f"n{index}", cpu=size)
    for gang, least in plain.least.items():
        if least:
            toy.group(gang, least, phase="Running")
    for pod in plain.pods:
        parts: Any = {"group": pod.gang} if pod.gang != pod.name else {}
        created = f"2025-12-{20 - pod.age:02}T00:00:00Z"
        toy.pods(pod.name, cpu=pod.cpu, priority=pod.priority, node=f"n{pod.node}", created=created, **parts)
    toy.group("new", copies)
    toy.pods("new-a", group="new", cpu=cpu, priority=priority)
    for number in range(1, copies):
        toy.pods(f"new-{number}", group="new", cpu=cpu, priority=priority)
    toy.settle()
    gone = tuple(pod for pod in plain.pods if pod.name in toy.evicted)
    assert len(toy.evicted) == len(set(toy.evicted))
    assert len(toy.bound("new")) == (copies if gone or plain.fits((), cpu, copies) else 0)
    return gone


SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=4)
PODS = st.lists(
    st.tuples(
        st.integers(0, 3), st.integers(1, 2), st.integers(0, 2), st.sampled_from(["", "", "x", "y"]), st.integers(0, 9)
    ),
    max_size=8,
)


def draw(sizes: list[int], raw: list[Any], least: dict[str, int], *, equal: bool = False) -> Plain:
    """As many of the drawn pods as there is room for."""
    pods: list[Pod] = []
    for number, (node, cpu, priority, gang, age) in enumerate(raw):
        where, need = node % len(sizes), 1 if equal else cpu
        if sum(pod.cpu for pod in pods if pod.node == where) + need <= sizes[where]:
            name = f"p{number}"
            pods.append(Pod(name, where, need, {"x": 0, "y": 1}.get(gang, priority), gang or name, age))
    names = {pod.gang for pod in pods}
    minima = {gang: min(least.get(gang, 0), sum(pod.gang == gang for pod in pods)) for gang in names}
    return Plain(sizes, pods, minima)


@QUIET
@given(SIZES, PODS, st.integers(1, 3), st.integers(1, 4))
def test_of_equal_pods_exactly_the_cheapest_go(new_toy: Any, sizes: Any, raw: Any, cpu: int, priority: int) -> None:
    """One pod asks; all others are alone, of one size and of different ages: then even the names are the same."""
    plain = draw(sizes, [(*item[:3], "", 0) for item in raw], {}, equal=True)
    plain = Plain(
        plain.nodes, [Pod(p.name, p.node, 1, p.priority, p.gang, n) for n, p in enumerate(plain.pods)], plain.least
    )
    gone = play(new_toy(), plain, cpu, 1, priority)
    enough = [chosen for chosen in plain.sets(priority) if plain.fits(chosen, cpu, 1)]
    if not enough or () in enough:
        assert gone == ()
        return
    prices = {chosen: (*plain.cost(chosen)[::3], sum(p.priority for p in chosen)) for chosen in enough}
    assert prices[gone] == min(prices.values())
    here = [pod for pod in plain.pods if pod.node == gone[0].node and pod not in gone]
    assert not any(other.priority == pod.priority and other.age < pod.age for other in here for pod in gone)


@QUIET
@given(SIZES, PODS, st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 4))
def test_the_victims_are_as_cheap_as_the_plain_rule_finds_them(
    new_toy: Any, sizes: Any, raw: Any, least_x: int, least_y: int, cpu: int, copies: int, priority: int
) -> None:
    plain = draw(sizes, raw, {"x": least_x, "y": least_y})
    gone = play(new_toy(), plain, cpu, copies, priority)
    enough = [chosen for chosen in plain.sets(priority) if plain.fits(chosen, cpu, copies)]
    if not enough or () in enough:
        assert gone == ()
        return
    assert gone in enough
    assert plain.cost(gone)[:1] == min(plain.cost(chosen)[:1] for chosen in enough)
    smaller = [chosen for chosen in enough if set(chosen) < set(gone)]
    assert not smaller, "no victim can be left out"
    assert plain.cost(gone) == min(plain.cost(chosen) for chosen in enough)


WIDER = st.lists(st.integers(2, 5), min_size=2, max_size=4)
MIXED = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.integers(1, 3),
        st.just(0),
        st.sampled_from(["", "x", "x", "y", "z"]),
        st.integers(0, 9),
    ),
    min_size=5,
    max_size=10,
)


@settings(QUIET, max_examples=150)
@given(
    WIDER,
    MIXED,
    st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3)),
    st.integers(1, 3),
    st.integers(1, 4),
)
def test_of_all_sets_of_gangs_and_lone_pods_the_cheapest_goes(
    new_toy: Any, sizes: Any, raw: Any, least: tuple[int, int, int], cpu: int, copies: int
) -> None:
    """All have one priority: what counts is how many gangs end, how many are touched, how many pods go."""
    plain = draw(sizes, raw, dict(zip("xyz", least, strict=True)))
    plain = Plain(plain.nodes, [Pod(p.name, p.node, p.cpu, 0, p.gang, p.age) for p in plain.pods], plain.least)
    gone = play(new_toy(), plain, cpu, copies, 1)
    enough = [chosen for chosen in plain.sets(1) if plain.fits(chosen, cpu, copies)]
    if not enough or () in enough:
        assert gone == ()
        return
    assert gone in enough
    assert plain.cost(gone) == min(plain.cost(chosen) for chosen in enough)


def test_one_gang_goes_instead_of_two_lone_pods_and_another_gang(toy: Any) -> None:
    """Node by node the lone pods look as cheap as the gang, which makes room on three nodes at once."""
    for number in range(3):
        toy.node(f"n{number}", cpu=4)
    toy.group("wide", 3, phase="Running")
    for number in range(3):
        toy.pods(f"wide-{number}", cpu=2, priority=0, node=f"n{number}", group="wide")
        toy.pods(f"lone-{number}", cpu=2, priority=0, node=f"n{number}")
    toy.group("new", 3)
    toy.pods("new", 3, group="new", cpu=2, priority=1)
    toy.settle()
    assert sorted(toy.evicted) == ["wide-0", "wide-1", "wide-2"]
