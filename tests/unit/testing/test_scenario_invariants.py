"""What is always checked beside the limits: promises, devices, and that whoever waits knows why."""

import json
from typing import Any

from kube import Decision, Key, Mutation, Store, Verb, from_manifest
from testing.scenarios.cards import given_twice
from testing.scenarios.limits import charges_of
from testing.scenarios.promises import Promises
from testing.scenarios.waits import unexplained


def store_of(*manifests: Any) -> Store:
    store = Store()
    for manifest in manifests:
        store.put(from_manifest(manifest, uid=manifest["metadata"]["name"]))
    return store


def pod(name: str, node: str = "", *, annotations: Any = None, requests: Any = None, status: Any = None) -> Any:
    container = {"name": "main", "resources": {"requests": requests or {}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations or {}},
        "spec": {"containers": [container], **({"nodeName": node} if node else {})},
        "status": {"phase": "Running" if node else "Pending", **(status or {})},
    }


def promised(node: str) -> Promises:
    """``low`` was evicted so that ``high`` starts on ``node``."""
    promises = Promises()
    mutation = Mutation(Verb.EVICT, Key("Pod", "default", "low"), "low")
    payload = {"claim": {"places": [["Pod", "default", "high", "high", node]]}}
    subject = Key("Pod", "default", "high")
    promises.note(Decision("GangPreempted", subject, "high", "", "", (mutation,), payload))
    return promises


def test_a_promise_is_kept_by_a_place_on_the_node_that_was_promised() -> None:
    assert promised("n1").broken(store_of(pod("high", "n1"))) == []


def test_whoever_waits_though_its_victims_left_was_promised_in_vain() -> None:
    assert "low left n1 for pod high, which waits" in promised("n1").broken(store_of(pod("high")))[0]


def test_whoever_went_elsewhere_needed_no_victims() -> None:
    assert "which is on n2" in promised("n1").broken(store_of(pod("high", "n2")))[0]


def test_a_promise_whose_victims_linger_is_not_looked_at_again() -> None:
    promises = promised("n1")
    assert promises.broken(store_of(pod("high"), pod("low", "n1"))) == []
    assert promises.broken(store_of(pod("high"))) == []


def cards(**given: Any) -> Any:
    return {"tidegate.dev/devices": json.dumps(given["cards"])}


def test_a_card_is_given_to_one_pod_or_in_shares_that_are_no_more_than_all() -> None:
    whole = cards(cards={"nvidia.com/gpu": [0]})
    assert given_twice(store_of(pod("a", "n", annotations=whole), pod("b", "m", annotations=whole))) == []
    assert given_twice(store_of(pod("a", "n", annotations=whole), pod("b", "n", annotations=whole))) == [
        "card 0 of node n is given out to 200 %"
    ]
    share = cards(cards={"koordinator.sh/gpu": [0]})
    halves = [
        pod(
            name,
            "n",
            annotations=share,
            requests={"koordinator.sh/gpu-core": 50, "koordinator.sh/gpu-memory-ratio": 50},
        )
        for name in "abc"
    ]
    assert given_twice(store_of(*halves[:2])) == []
    assert given_twice(store_of(*halves)) == ["card 0 of node n is given out to 150 %"]


def test_cores_and_memory_of_a_card_are_two_things() -> None:
    share, core, ratio = (
        cards(cards={"koordinator.sh/gpu": [0]}),
        "koordinator.sh/gpu-core",
        "koordinator.sh/gpu-memory-ratio",
    )
    compute = pod("a", "n", annotations=share, requests={core: 80})
    memory = pod("b", "n", annotations=share, requests={ratio: 80})
    both = pod("c", "n", annotations=share, requests={core: 20, ratio: 30})
    assert given_twice(store_of(compute, memory)) == []
    assert given_twice(store_of(compute, memory, both)) == ["card 0 of node n is given out to 110 %"]


def test_a_cpu_belongs_to_one_pod() -> None:
    def pinned(name: str, cpus: str) -> Any:
        return pod(name, "n", annotations={"scheduling.koordinator.sh/resource-status": json.dumps({"cpuset": cpus})})

    assert given_twice(store_of(pinned("a", "0-2"), pinned("b", "3,5"))) == []
    assert given_twice(store_of(pinned("a", "0-2"), pinned("b", "2,5"))) == ["CPU 2 of node n belongs to 2 pods"]


def test_a_pod_that_waits_without_a_word_is_told_of() -> None:
    silent = pod("p")
    told = pod("q", status={"conditions": [{"type": "PodScheduled", "status": "False", "message": "no room"}]})
    store = store_of(silent, told)
    assert unexplained(store.of_kind("Pod").values(), store, [""]) == ["pod p waits, and nothing says why"]


def test_what_a_reservation_has_left_counts_on_its_node() -> None:
    held = {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "Reservation",
        "metadata": {"name": "r"},
        "spec": {},
        "status": {"phase": "Available", "nodeName": "n", "allocatable": {"cpu": "4"}, "allocated": {"cpu": "3"}},
    }
    (charge,) = charges_of(store_of(held))
    assert (charge.pod, charge.node, charge.amounts) == ("reservation r", "n", {"cpu": 1000})
