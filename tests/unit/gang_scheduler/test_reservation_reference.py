"""Reservations against a plain scheduler on random clusters: the same placements, and nothing is given out twice."""

import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

QUIET = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
ALLOCATED = "scheduling.koordinator.sh/reservation-allocated"


@dataclass
class Held:
    """A reservation of the plain scheduler: ``app`` is whose it is."""

    name: str
    cpu: int
    app: str
    once: bool
    restricted: bool
    node: str = ""
    over: bool = False
    owners: dict[str, int] = field(default_factory=dict)

    @property
    def left(self) -> int:
        if not self.node or self.over or (self.once and self.owners):
            return 0
        return max(0, self.cpu - sum(self.owners.values()))


@dataclass
class Plain:
    """One after the other, reservations first; a node is looked at as if the reservation tried were not there."""

    nodes: dict[str, int]
    held: list[Held]
    pods: dict[str, tuple[str, int, str]] = field(default_factory=dict)
    """By pod: node, cpu, reservation."""

    def free(self, node: str, without: Held | None = None) -> int:
        pods = sum(cpu for where, cpu, _ in self.pods.values() if where == node)
        held = sum(item.left for item in self.held if item.node == node and item is not without)
        return self.nodes[node] - pods - held

    def best(self, cpu: int) -> str:
        fitting = [node for node in self.nodes if self.free(node) >= cpu]

        def place(node: str) -> tuple[int, str]:
            return -round((self.nodes[node] - self.free(node) + cpu) / self.nodes[node] * 1_000_000), node

        return min(fitting, key=place, default="")

    def reserve(self) -> None:
        for item in sorted(self.held, key=lambda item: item.name):
            if not item.node:
                item.node = self.best(item.cpu)

    def put(self, name: str, app: str, cpu: int) -> None:
        mine = [item for item in self.held if item.app == app and item.node and not item.over]
        open_ones = [item for item in mine if not (item.once and item.owners)]

        def fullness(item: Held) -> int:
            return (sum(item.owners.values()) + cpu) * 1_000_000 // item.cpu

        for item in sorted(open_ones, key=lambda item: (-fullness(item), item.name)):
            if item.restricted and item.left < cpu:
                continue
            if self.free(item.node, without=item) >= cpu:
                item.owners[name] = cpu
                self.pods[name] = item.node, cpu, item.name
                return
        node = self.best(cpu)
        if node:
            self.pods[name] = node, cpu, ""

    def finish(self) -> None:
        """One-time reservations that were used are over."""
        for item in self.held:
            item.over = item.over or (item.once and bool(item.owners))

    def progress(self) -> tuple[int, int, int]:
        """Changes with every step forward."""
        standing = sum(bool(item.node) for item in self.held)
        return len(self.pods), standing, sum(item.over for item in self.held)

    def drop(self, name: str) -> None:
        for item in self.held:
            item.owners.pop(name, None)
        self.pods.pop(name, None)


NODES = st.lists(st.integers(2, 8), min_size=1, max_size=4)
HELD = st.lists(
    st.tuples(st.integers(1, 6), st.sampled_from("ab"), st.booleans(), st.booleans()), min_size=1, max_size=5
)
PODS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 5)), min_size=1, max_size=8)


def set_up(toy: Any, nodes: list[int], held: list[Any]) -> Plain:
    plain = Plain({f"n{number}": cpu for number, cpu in enumerate(nodes)}, [])
    for name, cpu in plain.nodes.items():
        toy.node(name, cpu=cpu)
    for number, (cpu, app, once, restricted) in enumerate(held):
        item = Held(f"r{number}", cpu, app, once, restricted)
        policy = "Restricted" if restricted else "Aligned"
        toy.reservation(item.name, cpu=cpu, labels={"app": app}, allocateOnce=once, allocatePolicy=policy)
        plain.held.append(item)
    toy.settle()
    plain.reserve()
    return plain


def placed(toy: Any) -> dict[str, tuple[str, str]]:
    told = {name: toy.pod(name).annotations.get(ALLOCATED) for name in toy.bound()}
    return {name: (toy.where(name), json.loads(text)["name"] if text else "") for name, text in told.items()}


def check_nothing_is_given_twice(toy: Any, nodes: dict[str, int]) -> None:
    """On every node pods and what reservations still hold stay within what there is; a restricted one gives no more."""
    where = placed(toy)
    cpu = {name: int(toy.pod(name).spec["containers"][0]["resources"]["requests"]["cpu"]) for name in where}
    for node, capacity in nodes.items():
        total = sum(cpu[name] for name, (at, _) in where.items() if at == node)
        for item in toy.store.of_kind("Reservation.scheduling.koordinator.sh").values():
            taken = sum(cpu[name] for name, (_, used) in where.items() if used == item.name)
            reserved = int(item.spec["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"])
            if item.spec["allocatePolicy"] == "Restricted":
                assert taken <= reserved
            if item.status.get("nodeName") == node and item.status["phase"] == "Available":
                total += max(0, reserved - taken)
        assert total <= capacity


@QUIET
@given(nodes=NODES, held=HELD, first=PODS, second=PODS, gone=st.sets(st.integers(0, 7)))
def test_owners_and_others_go_where_the_plain_scheduler_puts_them(
    new_toy: Any, nodes: list[int], held: list[Any], first: list[Any], second: list[Any], gone: set[int]
) -> None:
    toy = new_toy()
    plain = set_up(toy, nodes, held)
    assert {item.name: item.node for item in plain.held} == {
        item.name: str(toy.reserved(item.name).get("nodeName") or "") for item in plain.held
    }
    waiting: dict[str, tuple[str, int]] = {}
    for wave, pods in (("p", first), ("q", second)):
        for number, (app, cpu) in enumerate(pods):
            toy.pods(f"{wave}{number}", cpu=cpu, labels={"app": app})
            waiting[f"{wave}{number}"] = app, cpu
        toy.settle()
        while True:
            before = plain.progress()
            plain.reserve()
            for name in sorted(waiting):
                plain.put(name, *waiting[name])
            plain.finish()
            waiting = {name: pod for name, pod in waiting.items() if name not in plain.pods}
            if plain.progress() == before:
                break
        assert placed(toy) == {name: (node, used) for name, (node, _, used) in plain.pods.items()}
        check_nothing_is_given_twice(toy, plain.nodes)
        leaving = [f"{wave}{number}" for number in sorted(gone) if f"{wave}{number}" in plain.pods]
        if wave == "p" and leaving:
            toy.gone(*leaving)
            for name in leaving:
                plain.drop(name)


GROUPS = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4), st.sampled_from("abc")), min_size=1, max_size=5)


@QUIET
@given(nodes=NODES, held=HELD, groups=GROUPS, pods=PODS, order=st.permutations(range(3)))
@example(  # A gang leaves two nodes for an owner of a reservation, which keeps to the one that it was promised.
    nodes=[7, 2, 8],
    held=[(4, "a", True, False), (4, "b", True, False), (5, "b", True, False)],
    groups=[(1, 2, "b"), (1, 1, "b"), (3, 3, "c"), (4, 4, "c")],
    pods=[("c", 3), ("b", 3), ("a", 5), ("b", 5), ("a", 5), ("a", 3), ("c", 1)],
    order=[1, 0, 2],
)
@example(
    nodes=[8, 4, 6],
    held=[(6, "b", False, False), (3, "a", True, True), (6, "a", True, True), (4, "a", True, True)],
    groups=[(1, 3, "b")],
    pods=[("a", 2), ("b", 3), ("b", 5), ("b", 5), ("a", 2)],
    order=[1, 0, 2],
)
def test_whatever_comes_in_whatever_order_nothing_is_given_out_twice(
    new_toy: Any, nodes: list[int], held: list[Any], groups: list[Any], pods: list[Any], order: list[int]
) -> None:
    toy = new_toy()
    toy.now += 1
    plain = set_up(toy, nodes, [])

    def reserve() -> None:
        for number, (cpu, app, once, restricted) in enumerate(held):
            policy = "Restricted" if restricted else "Aligned"
            toy.reservation(f"r{number}", cpu=cpu, labels={"app": app}, allocateOnce=once, allocatePolicy=policy)

    def gather() -> None:
        for number, (least, cpu, app) in enumerate(groups):
            toy.group(f"g{number}", least)
            toy.pods(f"g{number}", least, group=f"g{number}", cpu=cpu, labels={"app": app})

    def come() -> None:
        for number, (app, cpu) in enumerate(pods):
            toy.pods(f"p{number}", cpu=cpu, labels={"app": app}, priority=number % 3)

    steps = (reserve, gather, come)
    for number in order:
        steps[number]()
        toy.settle()
        check_nothing_is_given_twice(toy, plain.nodes)
    toy.now += 25 * 3_600_000
    toy.settle()
    check_nothing_is_given_twice(toy, plain.nodes)
    left = toy.store.of_kind("Reservation.scheduling.koordinator.sh").values()
    assert all(item.status["phase"] in ("Succeeded", "Failed") for item in left)
