"""Resource claims: which devices they get, with whom, for how long, and why a pod waits for some."""

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gang_scheduler.domain.core import SchedulerCore
from gang_scheduler.domain.dra.allocator import Allocator
from gang_scheduler.domain.dra.requests import wanted
from gang_scheduler.domain.dra.slices import Device, DeviceId, slice_of, text_of
from kube import Event, Key, Manifest, from_manifest
from testing.device_claims import CLAIM, DRIVER, ask, claim, devices_on, dra, given_to, gpu, gpu_class, pod, users

QUIET = settings(max_examples=200, deadline=None)


@pytest.fixture
def two_nodes(toy: Any) -> Any:
    for node in ("n1", "n2"):
        toy.node(node, cpu=8)
    devices_on(toy, "n2", gpu("g0"), gpu("g1", "b"))
    gpu_class(toy)
    return toy


def test_a_pod_goes_where_its_claim_can_be_met_and_the_claim_says_what_it_got(two_nodes: Any) -> None:
    claim(two_nodes, "one", ask())
    pod(two_nodes, "p", "one")
    two_nodes.settle()
    assert two_nodes.where("p") == "n2"
    assert (given_to(two_nodes, "one"), users(two_nodes, "one")) == (["g0"], ["p"])
    term = two_nodes.store.get(Key(CLAIM, "default", "one")).status["allocation"]["nodeSelector"]["nodeSelectorTerms"][
        0
    ]
    assert term["matchFields"][0]["values"] == ["n2"]


def test_no_device_is_given_twice_and_who_waits_is_told(two_nodes: Any) -> None:
    for at in range(3):
        claim(two_nodes, f"c{at}", ask())
        pod(two_nodes, f"p{at}", f"c{at}")
    two_nodes.settle()
    assert [given_to(two_nodes, f"c{at}") for at in range(3)] == [["g0"], ["g1"], []]
    assert "request g needs 1 of class gpu: 2 match, 0 of them are free" in two_nodes.message("p2")
    assert two_nodes.log[-1].reason == "DevicesMissing"


def test_a_gang_of_claims_starts_whole_or_not_at_all(two_nodes: Any) -> None:
    two_nodes.group("g", 3)
    for at in range(3):
        claim(two_nodes, f"c{at}", ask())
        pod(two_nodes, f"p{at}", f"c{at}", group="g")
    two_nodes.settle()
    assert [two_nodes.where(f"p{at}") for at in range(3)] == ["", "", ""]
    assert [given_to(two_nodes, f"c{at}") for at in range(3)] == [[], [], []]
    devices_on(two_nodes, "n1", gpu("g0"))
    made = two_nodes.settle()
    assert made[0].name == "GangPlaced"
    assert sorted(two_nodes.where(f"p{at}") for at in range(3)) == ["n1", "n2", "n2"]


def test_pods_that_share_a_claim_are_where_its_devices_are(two_nodes: Any) -> None:
    claim(two_nodes, "shared", ask())
    for at in range(3):
        pod(two_nodes, f"p{at}", "shared")
    two_nodes.settle()
    assert {two_nodes.where(f"p{at}") for at in range(3)} == {"n2"}
    assert users(two_nodes, "shared") == ["p0", "p1", "p2"]


def test_devices_come_back_when_the_last_pod_has_ended(two_nodes: Any) -> None:
    claim(two_nodes, "shared", ask(count=2))
    pod(two_nodes, "a", "shared")
    pod(two_nodes, "b", "shared")
    two_nodes.settle()
    claim(two_nodes, "next", ask())
    pod(two_nodes, "later", "next")
    two_nodes.settle()
    two_nodes.finish("a")
    made = two_nodes.settle()
    assert [decision.name for decision in made if decision.name == "ClaimReleased"] == ["ClaimReleased"]
    assert (users(two_nodes, "shared"), two_nodes.where("later")) == (["b"], "")
    two_nodes.delete(Key("Pod", "default", "b"))
    two_nodes.settle()
    assert (given_to(two_nodes, "shared"), users(two_nodes, "shared"), given_to(two_nodes, "next")) == ([], [], ["g0"])


def test_a_restart_gives_no_device_twice(two_nodes: Any) -> None:
    claim(two_nodes, "one", ask())
    pod(two_nodes, "p", "one")
    two_nodes.settle()
    two_nodes.core, two_nodes.heard = SchedulerCore(), False
    two_nodes.fold([Event(None, item) for item in two_nodes.store.objects.values()])
    claim(two_nodes, "two", ask())
    pod(two_nodes, "q", "two")
    two_nodes.settle()
    assert (given_to(two_nodes, "one"), given_to(two_nodes, "two")) == (["g0"], ["g1"])


def test_a_refused_binding_leaves_its_devices_to_others(two_nodes: Any) -> None:
    from kube import Outcome

    claim(two_nodes, "one", ask(count=2))
    pod(two_nodes, "p", "one")
    two_nodes.entitle()
    (decision,) = two_nodes.core.decide(two_nodes.now, frozenset())
    two_nodes.core.assume("d", decision)
    claim(two_nodes, "two", ask())
    pod(two_nodes, "q", "two", priority=5)
    assert all(made.name == "WaitExplained" for made in two_nodes.core.decide(two_nodes.now, frozenset()))
    two_nodes.core.settle(Outcome("d", decision.name, decision.subject, False, {"": "no"}))
    two_nodes.settle()
    assert (given_to(two_nodes, "two"), two_nodes.where("p")) == (["g0"], "")


def test_a_pod_waits_for_a_claim_that_is_not_there(two_nodes: Any) -> None:
    pod(two_nodes, "p", "missing")
    two_nodes.settle()
    assert "resource claim missing does not exist" in two_nodes.message("p")
    claim(two_nodes, "missing", ask())
    two_nodes.settle()
    assert two_nodes.where("p") == "n2"


def test_a_pod_is_tried_again_when_it_is_told_the_name_of_the_claim_that_was_made_for_it(two_nodes: Any) -> None:
    """An API server's controller makes the claim first, and tells the pod later."""
    listed = [{"name": "gpu", "resourceClaimTemplateName": "template"}]
    two_nodes.pods("p", requests={"cpu": 1}, resourceClaims=listed)
    two_nodes.settle()
    claim(two_nodes, "p-gpu", ask(), owner="p")
    two_nodes.settle()
    assert two_nodes.where("p") == ""
    waiting = two_nodes.pod("p")
    made = [{"name": "gpu", "resourceClaimName": "p-gpu"}]
    told = waiting.changed(status={**waiting.status, "resourceClaimStatuses": made})
    two_nodes.fold([two_nodes.store.put(told)])
    two_nodes.settle()
    assert (two_nodes.where("p"), given_to(two_nodes, "p-gpu")) == ("n2", ["g0"])


def test_pods_of_one_template_are_of_one_shape(two_nodes: Any) -> None:
    """Their claims are their own, and ask for the same."""
    for at in range(2):
        pod(two_nodes, f"p{at}", f"c{at}")
        claim(two_nodes, f"c{at}", ask(), owner=f"p{at}")
    shapes = {record.shape.index for record in two_nodes.core.cluster.pods.values()}
    assert len(shapes) == 1
    two_nodes.settle()
    assert [given_to(two_nodes, f"c{at}") for at in range(2)] == [["g0"], ["g1"]]


def test_an_expression_that_cannot_be_evaluated_is_told(two_nodes: Any) -> None:
    claim(two_nodes, "one", ask(selectors=[{"cel": {"expression": 'device.attributes["x"].y == 1'}}]))
    pod(two_nodes, "p", "one")
    two_nodes.settle()
    assert "a selector of request g cannot be evaluated for device g" in two_nodes.message("p")


def test_a_class_that_is_not_there_is_told(two_nodes: Any) -> None:
    claim(two_nodes, "one", {"name": "r", "exactly": {"deviceClassName": "fpga"}})
    pod(two_nodes, "p", "one")
    two_nodes.settle()
    assert "request r names the device class fpga, which does not exist" in two_nodes.message("p")


def test_devices_of_one_request_may_have_to_agree_in_an_attribute(two_nodes: Any) -> None:
    agree = [{"requests": ["g"], "matchAttribute": f"{DRIVER}/root"}]
    claim(two_nodes, "pair", ask(count=2), constraints=agree)
    pod(two_nodes, "p", "pair")
    two_nodes.settle()
    assert two_nodes.where("p") == ""
    devices_on(two_nodes, "n1", gpu("g0", "a"), gpu("g1", "b"), gpu("g2", "b"))
    two_nodes.settle()
    assert given_to(two_nodes, "pair") == ["g1", "g2"]


def test_the_first_of_several_choices_that_can_be_met_is_taken(two_nodes: Any) -> None:
    choices = [
        {"name": "two", "deviceClassName": "gpu", "count": 2},
        {"name": "one", "deviceClassName": "gpu", "count": 1},
    ]
    for name in ("a", "b"):
        claim(two_nodes, name, {"name": "r", "firstAvailable": choices})
    claim(two_nodes, "small", ask())
    pod(two_nodes, "s", "small", priority=10)
    pod(two_nodes, "p", "a")
    two_nodes.settle()
    status = two_nodes.store.get(Key(CLAIM, "default", "a")).status
    assert [one["request"] for one in status["allocation"]["devices"]["results"]] == ["r/one"]


def test_all_devices_that_match_or_none(two_nodes: Any) -> None:
    claim(two_nodes, "small", ask())
    pod(two_nodes, "s", "small", priority=10)
    claim(two_nodes, "every", ask(allocationMode="All"))
    pod(two_nodes, "p", "every")
    two_nodes.settle()
    assert given_to(two_nodes, "every") == []
    two_nodes.delete(Key("Pod", "default", "s"))
    two_nodes.settle()
    assert given_to(two_nodes, "every") == ["g0", "g1"]


def test_who_watches_over_devices_takes_them_from_nobody(two_nodes: Any) -> None:
    claim(two_nodes, "all", ask(count=2))
    pod(two_nodes, "p", "all")
    two_nodes.settle()
    claim(two_nodes, "watch", ask(allocationMode="All", adminAccess=True))
    pod(two_nodes, "w", "watch")
    two_nodes.settle()
    assert (given_to(two_nodes, "all"), given_to(two_nodes, "watch")) == (["g0", "g1"], ["g0", "g1"])


def test_a_tainted_device_goes_only_to_who_tolerates_it(toy: Any) -> None:
    toy.node("n1", cpu=8)
    devices_on(toy, "n1", gpu("g0", taints=[{"key": "broken", "effect": "NoSchedule"}]))
    gpu_class(toy)
    claim(toy, "one", ask())
    pod(toy, "p", "one")
    claim(toy, "test", ask(tolerations=[{"key": "broken", "operator": "Exists"}]))
    pod(toy, "q", "test")
    toy.settle()
    assert (given_to(toy, "one"), given_to(toy, "test")) == ([], ["g0"])


def test_partitions_of_a_card_share_what_it_has(toy: Any) -> None:
    """Two small instances, or one large: by the counters of their pool."""

    def part(name: str, slices: int) -> Manifest:
        consumes = [{"counterSet": "gpu-0", "counters": {"slices": {"value": str(slices)}}}]
        return gpu(name, consumesCounters=consumes)

    toy.node("n1", cpu=8)
    counters = [{"name": "gpu-0", "counters": {"slices": {"value": "7"}}}]
    devices_on(toy, "n1", part("full", 7), part("half-0", 3), part("half-1", 3), sharedCounters=counters)
    gpu_class(toy)
    half = [{"cel": {"expression": f"'{DRIVER}' in device.attributes"}}]
    for at in range(3):
        claim(toy, f"c{at}", ask(selectors=half if at else []))
        pod(toy, f"p{at}", f"c{at}", priority=at)
    toy.settle()
    taken = [given_to(toy, f"c{at}") for at in range(3)]
    assert sorted(name for one in taken for name in one) in (["full"], ["half-0", "half-1"])


def test_a_device_that_several_nodes_reach_goes_to_one_claim(toy: Any) -> None:
    toy.node("n1", cpu=8, labels={"rack": "r1"})
    toy.node("n2", cpu=8)
    selector = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r1"]}]}]}
    pool = {"name": "rack", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeSelector": selector, "pool": pool, "devices": [gpu("far")]}
    toy.put(dra("ResourceSlice", "rack", spec))
    gpu_class(toy)
    for at in range(2):
        claim(toy, f"c{at}", ask())
        pod(toy, f"p{at}", f"c{at}")
    toy.settle()
    assert [toy.where(f"p{at}") for at in range(2)] == ["n1", ""]


ROOTS = st.lists(st.sampled_from("abc"), min_size=1, max_size=6)


@QUIET
@given(
    ROOTS, st.integers(1, 3), st.integers(0, 2), st.sampled_from(["", "matchAttribute", "distinctAttribute"]), st.data()
)
def test_devices_are_found_exactly_where_a_plain_search_finds_some(
    roots: list[str], first: int, second: int, rule: str, data: st.DataObject
) -> None:
    taken = data.draw(st.sets(st.integers(0, len(roots) - 1)))
    requests = [ask("a", count=first)] + ([ask("b", count=second)] if second else [])
    claimed: Manifest = {"requests": requests, "constraints": [{rule: f"{DRIVER}/root"}] if rule else []}
    devices = published(roots)
    search = Allocator(devices, {"gpu": ()}, lambda one: int(one.name[1:]) in taken, {})
    found = search.allocate([wanted(text_of(claimed))])
    free = [at for at in range(len(roots)) if at not in taken]
    ways = [way for way in combinations(free, first + second) if agrees([roots[at] for at in way], rule)]
    assert (found is not None) == bool(ways)
    if found is None:
        assert search.why
        return
    numbers = [int(one.device.id.name[1:]) for one in found]
    assert len(set(numbers)) == first + second
    assert tuple(sorted(numbers)) in ways


def agrees(values: list[str], rule: str) -> bool:
    return not rule or len(set(values)) == (1 if rule == "matchAttribute" else len(values))


def published(roots: list[str]) -> list[Device]:
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    listed = [gpu(f"g{at}", root) for at, root in enumerate(roots)]
    item = from_manifest(
        dra("ResourceSlice", "s", {"driver": DRIVER, "nodeName": "n", "pool": pool, "devices": listed})
    )
    found = slice_of(item)
    assert found is not None
    assert found.devices[0].id == DeviceId(DRIVER, "n", "g0")
    return list(found.devices)


def test_a_reservation_takes_no_claims_that_its_template_names(two_nodes: Any) -> None:
    claim(two_nodes, "one", ask())
    listed = [{"name": "c", "resourceClaimName": "one"}]
    template = {"containers": [{"resources": {"requests": {"cpu": 1}}}], "resourceClaims": listed}
    two_nodes.reservation("r", cpu=1, pod=template, allocateOnce=False)
    two_nodes.settle()
    assert (two_nodes.reserved("r")["nodeName"], given_to(two_nodes, "one")) == ("n1", [])
    pod(two_nodes, "mine", "one", labels={"app": "a"})
    two_nodes.settle()
    assert (two_nodes.where("mine"), given_to(two_nodes, "one")) == ("n2", ["g0"])
