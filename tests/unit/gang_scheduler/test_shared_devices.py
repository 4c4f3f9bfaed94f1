"""Devices of which several claims take a part each: how much, how often, and why one waits."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gang_scheduler.domain.dra.allocator import Allocator
from gang_scheduler.domain.dra.capacity import Capacity
from gang_scheduler.domain.dra.requests import wanted
from gang_scheduler.domain.dra.slices import slice_of, text_of
from kube import Key, Manifest, from_manifest

CLAIM = "ResourceClaim.resource.k8s.io"
DRIVER = "nic.example.com"


def dra(kind: str, name: str, spec: Manifest) -> Manifest:
    metadata = {"name": name, **({"namespace": "default"} if kind == "ResourceClaim" else {})}
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


def slice_with(*devices: Manifest, **more: Any) -> Manifest:
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    return dra(
        "ResourceSlice", "s", {"driver": DRIVER, "nodeName": "n1", "pool": pool, "devices": list(devices), **more}
    )


def nic(name: str, bandwidth: int = 10, policy: Manifest | None = None, **more: Any) -> Manifest:
    capacity = {"value": str(bandwidth), **({"requestPolicy": policy} if policy else {})}
    return {"name": name, "allowMultipleAllocations": True, "capacity": {"bandwidth": capacity}, **more}


def asking(bandwidth: int | None = None, count: int = 1, **more: Any) -> Manifest:
    exactly: Manifest = {"deviceClassName": "nic", "count": count, **more}
    if bandwidth is not None:
        exactly["capacity"] = {"requests": {"bandwidth": str(bandwidth)}}
    return {"requests": [{"name": "n", "exactly": exactly}]}


def claimant(toy: Any, name: str, devices: Manifest) -> None:
    toy.put(dra("ResourceClaim", name, {"devices": devices}))
    toy.pods(name, requests={"cpu": 1}, resourceClaims=[{"name": "c", "resourceClaimName": name}])
    toy.settle()


def results(toy: Any, name: str) -> list[Manifest]:
    status = toy.store.get(Key(CLAIM, "default", name)).status
    found: list[Manifest] = ((status.get("allocation") or {}).get("devices") or {}).get("results") or []
    return found


@pytest.fixture
def node(toy: Any) -> Any:
    toy.node("n1", cpu=8)
    toy.put(dra("DeviceClass", "nic", {"selectors": []}))
    return toy


def test_claims_share_a_device_until_its_capacity_is_taken(node: Any) -> None:
    node.put(slice_with(nic("nic-0")))
    for number in range(3):
        claimant(node, f"p{number}", asking(4))
    assert node.bound() == ["p0", "p1"]
    first, second = results(node, "p0")[0], results(node, "p1")[0]
    assert (first["device"], first["consumedCapacity"]) == ("nic-0", {"bandwidth": "4"})
    assert first["shareID"] != second["shareID"]
    said = "request n needs 1 of class nic with bandwidth 4: 1 match, 0 of them are free (nic-0 has bandwidth 2 left)"
    assert said in node.message("p2")
    assert node.explain("Pod", "p2")["rule"] == "DevicesMissing"
    node.finish("p0")
    node.settle()
    assert node.bound() == ["p0", "p1", "p2"]


def test_who_names_no_capacity_takes_the_default_or_all_of_it(node: Any) -> None:
    node.put(slice_with(nic("nic-0", policy={"default": "3"})))
    for number in range(4):
        claimant(node, f"p{number}", asking())
    assert node.bound() == ["p0", "p1", "p2"]
    assert results(node, "p0")[0]["consumedCapacity"] == {"bandwidth": "3"}
    node.put(
        dra("ResourceSlice", "t", {**slice_with(nic("nic-1"))["spec"], "pool": {"name": "t", "resourceSliceCount": 1}})
    )
    claimant(node, "q", asking())
    assert results(node, "p3")[0]["consumedCapacity"] == {"bandwidth": "10"}
    assert node.where("q") == ""


@pytest.mark.parametrize(
    ("capacity", "asked", "taken"),
    [
        (Capacity("b", 10), 4, 4),
        (Capacity("b", 10), None, 10),
        (Capacity("b", 10, default=2), None, 2),
        (Capacity("b", 10, values=(2, 5)), 3, 5),
        (Capacity("b", 10, values=(2, 5)), 6, None),
        (Capacity("b", 10, least=2, step=3), 1, 2),
        (Capacity("b", 10, least=2, step=3), 3, 5),
        (Capacity("b", 10, least=2, step=3), 5, 5),
        (Capacity("b", 10, least=2, most=4), 4, 4),
        (Capacity("b", 10, least=2, most=4, step=3), 3, None),
    ],
)
def test_a_request_is_rounded_up_to_what_the_device_gives(
    capacity: Capacity, asked: int | None, taken: int | None
) -> None:
    assert capacity.taken_by(asked) == taken


def test_a_device_that_is_not_shared_needs_the_capacity_and_is_taken_whole(node: Any) -> None:
    alone = {"allowMultipleAllocations": False}
    node.put(slice_with(nic("nic-0", 5, **alone), nic("nic-1", 20, **alone)))
    claimant(node, "p0", asking(6))
    assert [one["device"] for one in results(node, "p0")] == ["nic-1"]
    assert "shareID" not in results(node, "p0")[0]
    claimant(node, "p1", asking(6))
    assert node.where("p1") == ""


def test_a_capacity_that_no_device_has_is_told(node: Any) -> None:
    node.put(slice_with(nic("nic-0")))
    claimant(
        node,
        "p",
        {"requests": [{"name": "n", "exactly": {"deviceClassName": "nic", "capacity": {"requests": {"ports": "1"}}}}]},
    )
    assert "needs 1 of class nic with ports 1: 0 match" in node.message("p")


def test_a_claim_may_have_several_parts_of_one_device_unless_it_wants_different_ones(node: Any) -> None:
    node.put(
        slice_with(nic("nic-0", attributes={"id": {"string": "a"}}), nic("nic-1", attributes={"id": {"string": "b"}}))
    )
    claimant(node, "p0", asking(5, count=2))
    assert [one["device"] for one in results(node, "p0")] == ["nic-0", "nic-0"]
    assert len({one["shareID"] for one in results(node, "p0")}) == 2
    apart = {**asking(1, count=2), "constraints": [{"distinctAttribute": f"{DRIVER}/id"}]}
    claimant(node, "p1", apart)
    assert node.where("p1") == ""
    node.finish("p0")
    node.settle()
    assert sorted(one["device"] for one in results(node, "p1")) == ["nic-0", "nic-1"]


def test_what_is_watched_takes_no_part(node: Any) -> None:
    node.put(slice_with(nic("nic-0")))
    claimant(node, "p0", asking(adminAccess=True))
    claimant(node, "p1", asking(10))
    assert node.bound() == ["p0", "p1"]


def test_counters_of_the_pool_are_taken_once_by_all_who_share_a_device(node: Any) -> None:
    draws = {"consumesCounters": [{"counterSet": "s", "counters": {"slots": {"value": "1"}}}]}
    shared = [{"name": "s", "counters": {"slots": {"value": "1"}}}]
    node.put(slice_with(nic("nic-0", **draws), nic("nic-1", **draws), sharedCounters=shared))
    for number in range(3):
        claimant(node, f"p{number}", asking(5))
    assert node.bound() == ["p0", "p1"]
    assert {one["device"] for name in ("p0", "p1") for one in results(node, name)} == {"nic-0"}
    node.finish("p0", "p1")
    node.settle()
    assert node.where("p2") == "n1"


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 6), st.booleans()), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 2)), min_size=1, max_size=3),
)
def test_an_allocation_is_found_where_trying_all_finds_one(
    devices: list[tuple[int, bool]], asked: list[tuple[int, int]]
) -> None:
    listed = [nic(f"d{at}", size, allowMultipleAllocations=shared) for at, (size, shared) in enumerate(devices)]
    found = slice_of(from_manifest(slice_with(*listed)))
    assert found is not None
    search = Allocator(found.devices, {"nic": ()}, lambda device: False, {})
    chosen = search.allocate([wanted(text_of(asking(amount, count))) for amount, count in asked])
    needs = [amount for amount, count in asked for _ in range(count)]
    possible = any(fits(devices, needs, way) for way in product(range(len(devices)), repeat=len(needs)))
    assert (chosen is not None) == possible
    if chosen is not None:
        assert fits(
            devices, [one.ask.capacity[0][1] // 1000 for one in chosen], [int(one.device.id.name[1:]) for one in chosen]
        )


def fits(devices: list[tuple[int, bool]], needs: list[int], way: Any) -> bool:
    """Whether each device has what is taken of it; one that is not shared is taken once."""
    taken = [[need for need, at in zip(needs, way, strict=True) if at == number] for number in range(len(devices))]
    return all(
        sum(parts) <= size and (shared or len(parts) <= 1) for (size, shared), parts in zip(devices, taken, strict=True)
    )


@pytest.mark.parametrize("binds", [False, True])
def test_a_device_that_many_nodes_reach_may_stay_with_the_first_node(node: Any, binds: bool) -> None:
    spec = slice_with(nic("nic-0", bindsToNode=binds))["spec"]
    del spec["nodeName"]
    node.put(dra("ResourceSlice", "s", {**spec, "allNodes": True}))
    claimant(node, "p0", asking(1))
    selected = node.store.get(Key(CLAIM, "default", "p0")).status["allocation"].get("nodeSelector")
    field = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    assert selected == ({"nodeSelectorTerms": [{"matchFields": [field]}]} if binds else None)


def test_parts_that_come_free_one_by_one_are_kept_for_whom_they_were_freed(new_toy: Any) -> None:
    """Somebody less important waits for a part, too: it must not take the first one that comes free."""
    toy = new_toy(lingering=True)
    toy.node("n1", cpu=8)
    toy.put(dra("DeviceClass", "nic", {"selectors": []}), slice_with(nic("d0", 10)))
    for name in ("a", "b"):
        claimant(toy, name, asking(5))
    toy.put(dra("ResourceClaim", "high", {"devices": asking(10)}), dra("ResourceClaim", "low", {"devices": asking(5)}))
    for name, priority in (("high", 5), ("low", 0)):
        toy.pods(name, cpu=1, priority=priority, resourceClaims=[{"name": "c", "resourceClaimName": name}])
    toy.settle()
    assert sorted(toy.evicted) == ["a", "b"]
    toy.gone("a")
    toy.settle()
    assert (toy.where("high"), toy.where("low")) == ("", "")
    toy.gone("b")
    toy.settle()
    assert (toy.where("high"), toy.where("low")) == ("n1", "")
    assert sorted(toy.evicted) == ["a", "b"]
