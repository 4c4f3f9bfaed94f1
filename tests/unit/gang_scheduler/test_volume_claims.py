"""Volumes in placement: where a claim is, what it waits for, and which volume it gets, in Kubernetes' words."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kube import Key, Manifest

QUIET = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def volume(*claims: str) -> list[Manifest]:
    """The volumes of a pod that names ``claims``."""
    return [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]


def claim(toy: Any, name: str, *, bound: str = "", size: int = 1, mode: str = "ReadWriteOnce", **spec: Any) -> None:
    spec |= {"accessModes": [mode], "resources": {"requests": {"storage": f"{size}Gi"}}}
    if bound:
        spec["volumeName"] = bound
    toy.put(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name},
            "spec": spec,
            "status": {"phase": "Bound" if bound else "Pending"},
        }
    )


def disk(
    toy: Any, name: str, *, size: int = 10, at: tuple[str, ...] = (), mode: str = "ReadWriteOnce", **spec: Any
) -> None:
    """A volume, on the nodes ``at`` only."""
    spec |= {"capacity": {"storage": f"{size}Gi"}, "accessModes": [mode]}
    if at:
        wanted = {"key": "kubernetes.io/hostname", "operator": "In", "values": list(at)}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}}
    toy.put({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec})


def storage_class(toy: Any, name: str, *, mode: str = "WaitForFirstConsumer", maker: str = "x", **body: Any) -> None:
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
    toy.put({**kind, "provisioner": maker, "volumeBindingMode": mode, **body})


def given_to(toy: Any, name: str) -> tuple[str, str]:
    """The volume and the node that a claim was given."""
    item = toy.store.objects[Key("PersistentVolumeClaim", "default", name)]
    return str(item.spec.get("volumeName") or ""), item.annotations.get("volume.kubernetes.io/selected-node", "")


def three_nodes(toy: Any) -> None:
    for number in (1, 2, 3):
        toy.node(f"n{number}", cpu=4, labels={"zone": "a" if number < 3 else "b"})


def test_a_pod_waits_for_a_claim_that_is_not_there_and_goes_when_it_comes(toy: Any) -> None:
    three_nodes(toy)
    toy.pods("p", cpu=1, volumes=volume("data"))
    toy.settle()
    assert toy.message("p") == '0/3 nodes are available: persistentvolumeclaim "data" not found.'
    assert toy.explain("Pod", "p")["rule"] == "VolumesNotReady"
    disk(toy, "d")
    claim(toy, "data", bound="d")
    toy.settle()
    assert toy.bound() == ["p"]


def test_a_pod_waits_for_a_claim_that_is_bound_at_once(toy: Any) -> None:
    three_nodes(toy)
    storage_class(toy, "now", mode="Immediate")
    claim(toy, "data", storageClassName="now")
    claim(toy, "odd", storageClassName="nope")
    toy.pods("p", cpu=1, volumes=volume("data"))
    toy.pods("q", cpu=1, volumes=volume("odd"))
    toy.settle()
    assert "pod has unbound immediate PersistentVolumeClaims" in toy.message("p")
    assert 'storageclass.storage.k8s.io "nope" not found' in toy.message("q")


def test_a_claim_that_is_being_deleted_or_lost_takes_nobody(toy: Any) -> None:
    three_nodes(toy)
    claim(toy, "lost", bound="d")
    item = toy.store.objects[Key("PersistentVolumeClaim", "default", "lost")]
    toy.fold([toy.store.put(item.changed(status={"phase": "Lost"}))])
    disk(toy, "e")
    claim(toy, "going", bound="e")
    item = toy.store.objects[Key("PersistentVolumeClaim", "default", "going")]
    toy.fold([toy.store.put(item.changed(metadata={**item.metadata, "deletionTimestamp": "2026-01-01T00:00:00Z"}))])
    toy.pods("p", cpu=1, volumes=volume("lost"))
    toy.pods("q", cpu=1, volumes=volume("going"))
    toy.settle()
    assert 'persistentvolumeclaim "lost" bound to non-existent persistentvolume "d"' in toy.message("p")
    assert 'persistentvolumeclaim "going" is being deleted' in toy.message("q")


def test_a_bound_claim_is_where_its_volume_is(toy: Any) -> None:
    three_nodes(toy)
    disk(toy, "d", at=("n2",))
    claim(toy, "data", bound="d")
    toy.pods("p", cpu=3, volumes=volume("data"))
    toy.pods("q", cpu=3, volumes=volume("data"))
    toy.settle()
    assert toy.where("p") == "n2"
    assert "2 node(s) had volume node affinity conflict" in toy.message("q")


def test_a_bound_claim_whose_volume_is_not_there_takes_nobody(toy: Any) -> None:
    three_nodes(toy)
    claim(toy, "data", bound="d")
    toy.pods("p", cpu=1, volumes=volume("data"))
    toy.settle()
    assert "non-existent pv" in toy.message("p")


def test_the_first_pod_of_a_late_claim_chooses_its_node_and_the_others_follow(toy: Any) -> None:
    three_nodes(toy)
    storage_class(toy, "late")
    claim(toy, "data", storageClassName="late")
    toy.group("g", 2)
    toy.pods("g", 2, group="g", cpu=2, volumes=volume("data"))
    toy.settle()
    assert (toy.where("g-0"), toy.where("g-1"), given_to(toy, "data")) == ("n1", "n1", ("", "n1"))
    toy.group("h", 2)
    claim(toy, "more", storageClassName="late")
    toy.pods("h", 2, group="h", cpu=3, volumes=volume("more"))
    toy.settle()
    assert toy.bound("h") == []


def test_a_late_claim_is_made_only_where_its_class_allows(toy: Any) -> None:
    three_nodes(toy)
    allowed = [{"matchLabelExpressions": [{"key": "zone", "values": ["b"]}]}]
    storage_class(toy, "late", allowedTopologies=allowed)
    claim(toy, "data", storageClassName="late")
    toy.pods("p", cpu=1, volumes=volume("data"))
    toy.pods("q", cpu=4, volumes=volume("data"))
    toy.settle()
    assert toy.where("p") == "n3"
    assert "had volume node affinity conflict" in toy.message("q")


def test_of_volumes_made_by_hand_each_claim_gets_its_own_the_smallest_that_suffices(toy: Any) -> None:
    three_nodes(toy)
    storage_class(toy, "hand", maker="kubernetes.io/no-provisioner")
    for name, size, at in (("s", 1, "n2"), ("l", 8, "n2"), ("far", 2, "n3")):
        disk(toy, name, size=size, at=(at,), storageClassName="hand")
    claim(toy, "large", size=5, storageClassName="hand")
    claim(toy, "small", size=1, storageClassName="hand")
    claim(toy, "third", size=4, storageClassName="hand")
    toy.pods("p", cpu=1, volumes=volume("large", "small"))
    toy.settle()
    assert (toy.where("p"), given_to(toy, "large"), given_to(toy, "small")) == ("n2", ("l", "n2"), ("s", "n2"))
    toy.pods("q", cpu=1, volumes=volume("third"))
    toy.settle()
    assert "3 node(s) didn't find available persistent volumes to bind" in toy.message("q")


def test_two_pods_of_a_gang_do_not_get_one_volume(toy: Any) -> None:
    three_nodes(toy)
    storage_class(toy, "hand", maker="kubernetes.io/no-provisioner")
    disk(toy, "d", at=("n1", "n2"), storageClassName="hand")
    claim(toy, "one", storageClassName="hand")
    claim(toy, "two", storageClassName="hand")
    toy.group("g", 2)
    toy.pods("g-0", group="g", cpu=1, volumes=volume("one"))
    toy.pods("g-1", group="g", cpu=1, volumes=volume("two"))
    toy.settle()
    assert toy.bound() == []
    disk(toy, "e", at=("n3",), storageClassName="hand")
    toy.settle()
    assert {given_to(toy, "one")[0], given_to(toy, "two")[0]} == {"d", "e"}


def test_a_claim_for_one_pod_takes_no_second_one(toy: Any) -> None:
    three_nodes(toy)
    disk(toy, "d", mode="ReadWriteOncePod")
    claim(toy, "data", bound="d", mode="ReadWriteOncePod")
    toy.pods("p", cpu=1, volumes=volume("data"))
    toy.pods("q", cpu=1, volumes=volume("data"))
    toy.settle()
    assert toy.bound() == ["p"]
    assert "has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode" in toy.message("q")
    toy.finish("p")
    toy.settle()
    assert toy.bound() == ["p", "q"]


@pytest.mark.parametrize("claims", [("nope",), ("data",)])
def test_nobody_is_evicted_for_a_pod_that_waits_for_its_claim(toy: Any, claims: tuple[str, ...]) -> None:
    toy.node("n1", cpu=4)
    storage_class(toy, "now", mode="Immediate")
    claim(toy, "data", storageClassName="now")
    toy.pods("low", cpu=4, node="n1", priority=1)
    toy.pods("high", cpu=4, priority=9, volumes=volume(*claims))
    toy.settle()
    assert toy.evicted == []


def test_who_is_more_important_takes_a_claim_for_one_pod_from_the_one_that_has_it(toy: Any) -> None:
    three_nodes(toy)
    disk(toy, "d", mode="ReadWriteOncePod")
    claim(toy, "data", bound="d", mode="ReadWriteOncePod")
    toy.pods("low", cpu=1, volumes=volume("data"), priority=1)
    toy.pods("beside", cpu=1, priority=1)
    toy.settle()
    toy.pods("high", cpu=1, volumes=volume("data"), priority=9)
    toy.settle()
    assert (toy.evicted, toy.bound()) == (["low"], ["beside", "high"])


DISKS = st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["n1", "n2", "n3"])), max_size=6)
CLAIMS = st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=2), min_size=1, max_size=4)


@QUIET
@given(disks=DISKS, claims=CLAIMS)
def test_pods_with_volumes_made_by_hand_go_where_a_plain_search_finds_them_all(
    new_toy: Any, disks: list[tuple[int, str]], claims: list[list[int]]
) -> None:
    toy = new_toy()
    three_nodes(toy)
    storage_class(toy, "hand", maker="kubernetes.io/no-provisioner")
    for number, (size, node) in enumerate(disks):
        disk(toy, f"d{number}", size=size, at=(node,), storageClassName="hand")
    free = {f"d{number}": disk for number, disk in enumerate(disks)}
    for number, sizes in enumerate(claims):
        names = [f"c{number}-{place}" for place in range(len(sizes))]
        for name, size in zip(names, sizes, strict=True):
            claim(toy, name, size=size, storageClassName="hand")
        toy.pods(f"p{number}", cpu=0, volumes=volume(*names))
        toy.settle()
        at = {node: plainly(free, node, sizes) for node in ("n1", "n2", "n3")}
        where = toy.where(f"p{number}")
        assert bool(where) == any(found is not None for found in at.values())
        if where:
            chosen = [given_to(toy, name) for name in names]
            assert sorted(name for name, _ in chosen) == sorted(at[where] or ())
            assert {node for _, node in chosen} == {where}
            for name, _ in chosen:
                del free[name]


def plainly(free: dict[str, tuple[int, str]], node: str, sizes: list[int]) -> list[str] | None:
    """The volumes that claims of ``sizes`` get on a node, the smallest claim first; None when there are not enough."""
    left = dict(free)
    found = []
    for wanted in sorted(sizes):
        fitting = [(size, name) for name, (size, where) in left.items() if where == node and size >= wanted]
        if not fitting:
            return None
        found.append(min(fitting)[1])
        del left[found[-1]]
    return found
