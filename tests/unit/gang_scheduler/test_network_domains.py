"""Gangs that have to stay inside one network domain: the lowest tier that fits, then the fullest domain."""

from typing import Any


def domain(toy: Any, name: str, tier: int, *members: str, tier_name: str = "") -> None:
    """A HyperNode of nodes (whose names begin as given) or, above tier 1, of lower HyperNodes."""
    kind = "Node" if tier == 1 else "HyperNode"
    found = [
        {"type": kind, "selector": {"regexMatch": {"pattern": f"^{m}-"}} if tier == 1 else {"exactMatch": {"name": m}}}
        for m in members
    ]
    spec = {"tier": tier, "tierName": tier_name, "members": found}
    toy.put(
        {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": name}, "spec": spec}
    )


def racks(toy: Any, *names: str, nodes: int = 2, cpu: int = 2) -> None:
    """Racks ``ra``, ``rb`` … of nodes ``a-0``, ``a-1`` …, all under ``top``."""
    for name in names:
        for index in range(nodes):
            toy.node(f"{name}-{index}", cpu=cpu)
        domain(toy, f"r{name}", 1, name)
    domain(toy, "top", 2, *(f"r{name}" for name in names))


def gang(toy: Any, name: str, count: int, cpu: int = 2, **topology: Any) -> None:
    toy.group(name, count, networkTopology={"mode": "hard", "highestTierAllowed": 1, **topology})
    toy.pods(f"{name}-a", group=name, cpu=cpu)
    for index in range(1, count):
        toy.pods(f"{name}-{index}", group=name, cpu=cpu)


def test_a_gang_tied_to_a_rack_waits_and_is_told_why(toy: Any) -> None:
    racks(toy, "a", "b")
    gang(toy, "three", 3)
    toy.settle()
    assert toy.bound() == []
    assert "no network domain of tier 1 or lower holds the 3 members of three" in toy.message("three-a")


def test_the_lowest_tier_that_fits_wins_over_packing(toy: Any) -> None:
    racks(toy, "a", "b", "c")
    for name in ("a-0", "b-0"):
        toy.pods(f"used-{name}", cpu=1, node=name)
    for name in ("a-1", "b-1"):
        toy.pods(f"used-{name}", cpu=2, node=name)
    gang(toy, "pair", 2, cpu=1, highestTierAllowed=2)
    toy.settle()
    assert {toy.where(name)[0] for name in toy.bound("pair")} == {"c"}


def test_of_equal_tiers_the_fullest_domain_is_taken(toy: Any) -> None:
    racks(toy, "a", "b", cpu=4)
    toy.pods("used", cpu=1, node="b-0")
    gang(toy, "pair", 2)
    toy.settle()
    assert {toy.where(name)[0] for name in toy.bound("pair")} == {"b"}


def test_a_soft_wish_spills_over(toy: Any) -> None:
    racks(toy, "a", "b")
    gang(toy, "three", 3, mode="soft")
    toy.settle()
    assert len(toy.bound("three")) == 3


def test_a_soft_wish_that_no_domain_can_hold_takes_few_domains(toy: Any) -> None:
    racks(toy, "a", "b", "c", "d")
    for name in ("a-0", "b-0", "c-0"):
        toy.pods(f"used-{name}", cpu=2, node=name)
    gang(toy, "three", 3, mode="soft")
    toy.settle()
    assert sorted({toy.where(name)[0] for name in toy.bound("three")}) == ["a", "d"]


def test_a_soft_wish_spills_over_within_the_next_wider_domain(toy: Any) -> None:
    racks(toy, "a", "b", "c")
    toy.pods("used", cpu=2, node="a-0")
    domain(toy, "near", 2, "rb", "rc")
    domain(toy, "top", 3, "ra", "near")
    gang(toy, "four", 4, mode="soft")
    toy.settle()
    assert sorted({toy.where(name)[0] for name in toy.bound("four")}) == ["b", "c"]


def test_a_later_member_joins_the_rack_of_its_gang_or_waits(toy: Any) -> None:
    racks(toy, "a", "b")
    gang(toy, "g", 2)
    toy.settle()
    toy.pods("late", group="g", cpu=2)
    toy.settle()
    assert toy.where("late") == ""
    toy.delete(toy.pod("g-1").key)
    toy.settle()
    assert toy.where("late")[0] == toy.where("g-a")[0]


def test_a_domain_that_appears_wakes_those_who_wait_for_one(toy: Any) -> None:
    toy.node("a-0", cpu=2)
    toy.node("a-1", cpu=2)
    gang(toy, "pair", 2)
    toy.settle()
    assert toy.bound() == []
    domain(toy, "ra", 1, "a")
    toy.settle()
    assert len(toy.bound("pair")) == 2


def test_a_tier_can_be_named(toy: Any) -> None:
    racks(toy, "a", "b")
    domain(toy, "top", 2, "ra", "rb", tier_name="spine")
    toy.group("g", 3, networkTopology={"mode": "hard", "highestTierName": "spine"})
    toy.pods("g", 3, group="g", cpu=2)
    toy.settle()
    assert len(toy.bound("g")) == 3


def test_victims_are_sought_inside_one_domain(toy: Any) -> None:
    racks(toy, "a", "b")
    for index, node in enumerate(("a-0", "b-0", "a-1", "b-1")):
        toy.pods(f"low-{index}", cpu=2, node=node, priority=1)
    toy.group("g", 2, networkTopology={"mode": "hard", "highestTierAllowed": 1})
    toy.pods("g", 2, group="g", cpu=2, priority=9)
    toy.settle()
    assert len(toy.evicted) == 2
    assert len({toy.where(name)[0] for name in toy.bound("g")}) == 1


def labelled(toy: Any, name: str, zone: str, rack: str = "", region: str = "", cpu: int = 2) -> None:
    """A node with the labels of its places."""
    places = {"topology.kubernetes.io/zone": zone, "example.com/rack": rack, "topology.kubernetes.io/region": region}
    toy.node(name, cpu=cpu, labels={key: value for key, value in places.items() if value})


def test_labels_make_the_domains_where_there_are_no_hyper_nodes(toy: Any) -> None:
    for name, rack in (("a-0", "ra"), ("a-1", "ra"), ("b-0", "rb")):
        labelled(toy, name, "z", rack)
    labelled(toy, "c-0", "far", "ra")
    gang(toy, "three", 3)
    gang(toy, "two", 2)
    toy.settle()
    assert toy.bound("three") == []
    assert {toy.where(name) for name in toy.bound("two")} == {"a-0", "a-1"}
    assert "of tier 1 or lower holds the 3 members of three" in toy.message("three-a")


def test_the_narrowest_level_that_nodes_are_labelled_with_is_tier_1(toy: Any) -> None:
    for name, zone in (("a-0", "za"), ("a-1", "za"), ("b-0", "zb")):
        labelled(toy, name, zone, region="r")
    gang(toy, "two", 2)
    toy.settle()
    gang(toy, "named", 1, highestTierAllowed=None, highestTierName="region")
    toy.settle()
    assert {toy.where(name) for name in toy.bound("two")} == {"a-0", "a-1"}
    assert toy.bound("named") == ["named-a"]


def test_zones_are_above_hyper_nodes_for_whoever_allows_such_a_tier(toy: Any) -> None:
    for name in ("a-0", "a-1", "b-0", "b-1"):
        labelled(toy, name, "z")
    for name in ("a", "b"):
        domain(toy, f"r{name}", 1, name)
    gang(toy, "any", 3, highestTierAllowed=None)
    toy.settle()
    assert toy.bound() == []
    gang(toy, "wide", 3, highestTierAllowed=2)
    toy.settle()
    assert len(toy.bound("wide")) == 3


def test_a_gang_larger_than_every_domain_is_told_that_it_can_never_start(toy: Any) -> None:
    racks(toy, "a", "b")
    gang(toy, "three", 3)
    toy.settle()
    assert toy.explain("PodGroup", "three")["rule"] == "NeverFits"
    domain(toy, "ra", 1, "a", "b")
    toy.settle()
    assert len(toy.bound("three")) == 3


def test_a_later_member_is_told_that_its_domain_is_full(toy: Any) -> None:
    racks(toy, "a", "b")
    gang(toy, "g", 2)
    toy.settle()
    toy.pods("late", group="g", cpu=2)
    toy.settle()
    words = "no network domain of tier 1 or lower that has the 2 placed members of g has room for pod late"
    assert words in toy.message("late")
