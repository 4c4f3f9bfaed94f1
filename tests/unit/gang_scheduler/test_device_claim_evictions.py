"""Preemption for pods whose resource claims are held by less important ones: devices come free when all their users leave."""

from itertools import combinations
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from testing.device_claims import ask, claim, devices_on, given_to, gpu, gpu_class, pod, users

QUIET = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@pytest.fixture
def full(toy: Any) -> Any:
    """One node with two devices, each of which a pod has: ``low`` of priority 1 and ``mid`` of priority 2."""
    toy.node("n", cpu=8)
    devices_on(toy, "n", gpu("g0"), gpu("g1"))
    gpu_class(toy)
    for name, priority in (("low", 1), ("mid", 2)):
        claim(toy, f"of-{name}", ask())
        pod(toy, name, f"of-{name}", priority=priority)
    toy.settle()
    return toy


def test_the_least_important_user_of_a_device_makes_room(full: Any) -> None:
    claim(full, "mine", ask())
    pod(full, "high", "mine", priority=5)
    full.settle()
    assert full.evicted == ["low"]
    assert (full.where("high"), given_to(full, "mine"), users(full, "mine")) == ("n", ["g1"], ["high"])
    assert given_to(full, "of-low") == []


def test_nobody_goes_for_a_claim_that_their_devices_do_not_meet(full: Any) -> None:
    claim(full, "mine", ask(count=3))
    pod(full, "high", "mine", priority=5)
    full.settle()
    assert full.evicted == []
    assert not full.where("high")


def test_pods_without_claims_are_left_alone(full: Any) -> None:
    full.pods("plain", 3, requests={"cpu": 1}, priority=0)
    full.settle()
    claim(full, "mine", ask())
    pod(full, "high", "mine", priority=5)
    full.settle()
    assert full.evicted == ["low"]


def test_equal_priority_keeps_its_devices(full: Any) -> None:
    claim(full, "mine", ask())
    pod(full, "same", "mine", priority=1)
    full.settle()
    assert full.evicted == []


def test_a_shared_claim_comes_free_only_when_all_its_users_go(toy: Any) -> None:
    toy.node("n", cpu=8)
    devices_on(toy, "n", gpu("g0"))
    gpu_class(toy)
    claim(toy, "shared", ask())
    for name, priority in (("a", 1), ("b", 2)):
        pod(toy, name, "shared", priority=priority)
    toy.settle()
    assert users(toy, "shared") == ["b", "a"], "whoever was placed first"
    claim(toy, "mine", ask())
    pod(toy, "two", "mine", priority=2)
    toy.settle()
    assert toy.evicted == [], "b is as important"
    claim(toy, "mine-too", ask())
    pod(toy, "three", "mine-too", priority=3)
    toy.settle()
    assert sorted(toy.evicted) == ["a", "b"]
    assert toy.where("three") == "n"


def taken_by_two(new_toy: Any) -> Any:
    """A node of two devices, each with a pod of priority 1 that leaves slowly."""
    toy = new_toy(lingering=True)
    toy.node("n", cpu=8)
    devices_on(toy, "n", gpu("g0"), gpu("g1"))
    gpu_class(toy)
    for name in ("a", "b"):
        claim(toy, f"of-{name}", ask())
        pod(toy, name, f"of-{name}", priority=1)
    toy.settle()
    return toy


def test_a_claim_that_outlives_a_slow_victim_is_waited_for(new_toy: Any) -> None:
    """Nobody else is evicted while the victim leaves, nor while its claim is released."""
    toy = taken_by_two(new_toy)
    claim(toy, "mine", ask())
    pod(toy, "high", "mine", priority=5)
    toy.settle()
    assert len(toy.evicted) == 1
    assert not toy.where("high")
    toy.gone(*toy.evicted)
    toy.settle()
    assert len(toy.evicted) == 1
    assert toy.where("high") == "n"
    assert not toy.core.claims.promises


def test_who_waits_for_devices_is_told_whose_it_could_take(full: Any) -> None:
    claim(full, "mine", ask())
    pod(full, "same", "mine", priority=1)
    full.settle()
    answer = full.core.query("explain", {"kind": "Pod", "namespace": "default", "name": "same"})
    assert answer["evictable"] == ["default/low"]
    assert answer["priorityNeeded"] == 2
    assert any("with a priority of 2 or more" in way for way in answer["waysOut"])


@QUIET
@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 1), st.integers(1, 2)), min_size=1, max_size=5),
    st.integers(2, 4),
    st.integers(1, 3),
    st.integers(1, 4),
)
def test_the_cheapest_users_go(new_toy: Any, raw: Any, devices: int, count: int, priority: int) -> None:
    """Against all sets of pods: as unimportant as can be, then as few."""
    toy = new_toy()
    for node in range(2):
        toy.node(f"n{node}", cpu=32)
        devices_on(toy, f"n{node}", *(gpu(f"g{at}") for at in range(devices)))
    gpu_class(toy)
    placed: dict[str, tuple[int, int, int]] = {}
    for at, (important, node, asked) in enumerate(raw):
        if sum(one[2] for one in placed.values() if one[1] == node) + asked <= devices:
            placed[f"p{at}"] = important, node, asked
            claim(toy, f"c{at}", ask(count=asked))
            pod(toy, f"p{at}", f"c{at}", priority=important, nodeSelector={"kubernetes.io/hostname": f"n{node}"})
            toy.settle()
    claim(toy, "mine", ask(count=count))
    pod(toy, "new", "mine", priority=priority)
    toy.settle()

    def enough(gone: tuple[str, ...]) -> bool:
        free = [devices - sum(p[2] for name, p in placed.items() if p[1] == n and name not in gone) for n in (0, 1)]
        return max(free) >= count

    open_to = [name for name, (important, _, _) in placed.items() if important < priority]
    sets = [gone for size in range(len(open_to) + 1) for gone in combinations(open_to, size) if enough(gone)]
    if not sets or () in sets:
        assert toy.evicted == []
        return
    cost = {gone: (max(placed[name][0] for name in gone), len(gone)) for gone in sets}
    assert cost[tuple(name for name in placed if name in toy.evicted)] == min(cost.values())


def test_devices_that_come_free_one_by_one_are_kept_for_whom_they_were_freed(new_toy: Any) -> None:
    """Somebody less important waits for a device, too: it must not take the first one that comes free."""
    toy = taken_by_two(new_toy)
    claim(toy, "mine", ask(count=2))
    pod(toy, "high", "mine", priority=5)
    claim(toy, "small", ask())
    pod(toy, "other", "small", priority=1)
    toy.settle()
    assert sorted(toy.evicted) == ["a", "b"]
    toy.gone("a")
    toy.settle()
    assert not toy.where("other")
    toy.gone("b")
    toy.settle()
    assert (toy.where("high"), toy.where("other")) == ("n", "")
    assert sorted(toy.evicted) == ["a", "b"]


@pytest.mark.parametrize("patient", [True, False])
def test_devices_are_reserved_for_a_head_that_waits_only_for_them(full: Any, patient: bool) -> None:
    """As those of equal priority leave one by one, whoever asks for less must not take what the head waits for."""
    claim(full, "two", ask(count=2))
    pod(full, "head", "two", priority=1)
    full.settle()
    full.now += (6 if patient else 1) * 60_000
    full.settle()
    claim(full, "one", ask())
    pod(full, "small", "one", priority=1)
    full.settle()
    full.gone("low")
    full.settle()
    assert full.where("small") == ("" if patient else "n")
    assert not patient or "room is reserved for head" in full.message("small")
    full.gone("mid")
    full.settle()
    assert full.where("head") == ("n" if patient else "")
    assert full.evicted == []


def test_a_head_that_asks_for_more_devices_than_there_are_keeps_nobody_behind_it_waiting(full: Any) -> None:
    claim(full, "three", ask(count=3))
    pod(full, "vain", "three", priority=1)
    full.settle()
    claim(full, "two", ask(count=2))
    pod(full, "head", "two", priority=1)
    full.settle()
    full.now += 6 * 60_000
    claim(full, "one", ask())
    pod(full, "small", "one", priority=1)
    full.settle()
    full.gone("low")
    full.settle()
    assert (full.where("small"), full.where("vain")) == ("", "")
    full.gone("mid")
    full.settle()
    assert full.where("head") == "n"
    devices_on(full, "n", *(gpu(f"g{number}") for number in range(6)))
    full.settle()
    assert (full.where("small"), full.where("vain")) == ("n", "n")
