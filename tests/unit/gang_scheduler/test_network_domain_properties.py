"""The domain that is chosen against the plain rule: every domain in its order, the first in which the gang can be placed."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gang_scheduler.domain.topology.network_domains import Domain, DomainTable, Need

GANG = "g"


@dataclass(frozen=True)
class Rack:
    """A rack in a zone: the free cpus of its nodes, all of which have 4."""

    zone: int
    free: tuple[int, ...]


RACKS = st.lists(
    st.builds(Rack, st.integers(0, 2), st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple)),
    min_size=1,
    max_size=5,
)


def build(toy: Any, racks: list[Rack], *, labels: bool) -> Any:
    """Nodes ``<rack>-<index>``; the tree by HyperNodes or by labels."""
    for number, rack in enumerate(racks):
        for index, free in enumerate(rack.free):
            name = f"{number}-{index}"
            places = {"example.com/rack": f"r{number}", "topology.kubernetes.io/zone": f"z{rack.zone}"}
            toy.node(name, cpu=4, labels=places if labels else {})
            if free < 4:
                toy.pods(f"used-{name}", cpu=4 - free, node=name)
    if not labels:
        for number in range(len(racks)):
            put_domain(toy, f"r{number}", 1, "Node", "regexMatch", {"pattern": f"^{number}-"})
        for zone in sorted({rack.zone for rack in racks}):
            inside = [f"r{number}" for number, rack in enumerate(racks) if rack.zone == zone]
            put_domain(toy, f"z{zone}", 2, "HyperNode", "regexMatch", {"pattern": f"^({'|'.join(inside)})$"})
    return toy


def put_domain(toy: Any, name: str, tier: int, kind: str, way: str, selector: Any) -> None:
    spec = {"tier": tier, "members": [{"type": kind, "selector": {way: selector}}]}
    toy.put(
        {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": name}, "spec": spec}
    )


def ask(toy: Any, count: int, cpu: int, mode: str, tier: int) -> None:
    toy.group(GANG, count, networkTopology={"mode": mode, "highestTierAllowed": tier})
    toy.pods(f"{GANG}-a", 1, group=GANG, cpu=cpu)
    for number in range(1, count):
        toy.pods(f"{GANG}-{number}", group=GANG, cpu=cpu)
    toy.settle()


def plainly(racks: list[Rack], count: int, cpu: int, tier: int, *, labels: bool) -> set[int] | None:
    """The racks in which the gang goes: rack by rack, then zone by zone, the fullest first, then by name."""

    def fullness(inside: list[int]) -> float:
        nodes = [free for number in inside for free in racks[number].free]
        pods = sum(1 for free in nodes if free < 4)
        return round((4 * len(nodes) - sum(nodes)) / (4 * len(nodes)) + pods / (110 * len(nodes)), 9)

    zones = sorted({rack.zone for rack in racks})
    # By labels a rack's name begins with that of its zone.
    order = sorted(range(len(racks)), key=lambda number: (labels * racks[number].zone, number))
    tiers = [[[number] for number in order]]
    tiers.append([[number for number, rack in enumerate(racks) if rack.zone == zone] for zone in zones])
    for domains in tiers[:tier]:
        for inside in sorted(domains, key=lambda numbers: -fullness(numbers)):
            if sum(free // cpu for number in inside for free in racks[number].free) >= count:
                return set(inside)
    return None


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(RACKS, st.integers(1, 6), st.integers(1, 3), st.integers(1, 2), st.booleans())
def test_a_hard_gang_goes_where_the_plain_rule_puts_it_by_hyper_nodes_and_by_labels(
    new_toy: Any, racks: list[Rack], count: int, cpu: int, tier: int, labels: bool
) -> None:
    toy = build(new_toy(), racks, labels=labels)
    ask(toy, count, cpu, "hard", tier)
    expected = plainly(racks, count, cpu, tier, labels=labels)
    used = {int(toy.where(name).partition("-")[0]) for name in toy.bound(GANG)}
    if expected is None:
        assert used == set()
    else:
        assert used
        assert used <= expected


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(RACKS, st.integers(1, 6), st.integers(1, 3))
def test_a_soft_gang_starts_wherever_there_is_room_and_in_the_lowest_tier_that_has_it(
    new_toy: Any, racks: list[Rack], count: int, cpu: int
) -> None:
    toy = build(new_toy(), racks, labels=True)
    ask(toy, count, cpu, "soft", 2)
    room = sum(free // cpu for rack in racks for free in rack.free)
    assert len(toy.bound(GANG)) == (count if room >= count else 0)
    expected = plainly(racks, count, cpu, 2, labels=True)
    if expected is not None:
        assert {int(toy.where(name).partition("-")[0]) for name in toy.bound(GANG)} <= expected


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(RACKS, st.integers(2, 5), st.integers(1, 3))
def test_room_for_a_gang_tied_to_a_rack_is_made_in_one_rack_and_only_if_it_then_starts(
    new_toy: Any, racks: list[Rack], count: int, cpu: int
) -> None:
    toy = build(new_toy(), racks, labels=True)
    toy.put(
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000}
    )
    toy.group(GANG, count, priorityClassName="high", networkTopology={"mode": "hard", "highestTierAllowed": 1})
    toy.pods(f"{GANG}-p", count, group=GANG, cpu=cpu)
    toy.settle()
    bound = {toy.where(name).partition("-")[0] for name in toy.bound(GANG)}
    possible = any(4 // cpu * len(rack.free) >= count for rack in racks)
    assert len(toy.bound(GANG)) == (count if possible else 0)
    assert len(bound) <= 1
    gone = {name.split("-")[1] for name in toy.evicted}
    assert gone <= bound


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 3), st.lists(st.booleans(), min_size=6, max_size=6)), max_size=6),
    st.lists(st.tuples(st.lists(st.integers(0, 3), min_size=6, max_size=6), st.integers(0, 9)), max_size=3),
    st.none() | st.integers(1, 3),
    st.lists(st.integers(0, 5), max_size=2),
)
def test_the_domains_that_are_left_out_are_those_that_lack_a_held_node_or_places(
    given_domains: list[tuple[int, list[bool]]],
    asked: list[tuple[list[int], int]],
    highest: int | None,
    held: list[int],
) -> None:
    domains = [Domain(tier, f"d{n}", np.array(nodes, np.bool_)) for n, (tier, nodes) in enumerate(given_domains)]
    table = DomainTable(domains)
    needs = [Need(np.array(copies, np.int64), wanted) for copies, wanted in asked]
    found = {table.domains[number].name for number in table.candidates(highest, held, needs)}
    expected = {
        domain.name
        for domain in domains
        if (highest is None or domain.tier <= highest)
        and all(domain.nodes[slot] for slot in held)
        and all(int(need.copies[domain.nodes].sum()) >= need.wanted for need in needs)
    }
    assert found == expected
