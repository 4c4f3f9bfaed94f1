"""CPUs of a pod's own: whole cores or spread, as the pod or the node says."""

import json
from typing import Any

from kube import Key, Manifest

PINNED = {"koordinator.sh/qosClass": "LSR"}


def spread_pods(toy: Any, name: str, cpus: int, spec: Manifest, count: int = 1) -> None:
    annotations = {"scheduling.koordinator.sh/resource-spec": json.dumps(spec)}
    toy.pods(name, count, requests={"cpu": cpus}, labels=PINNED, annotations=annotations)


def hyperthreaded(toy: Any, name: str = "n1", cores: int = 4, **parts: Any) -> None:
    """CPU n and n + cores are the threads of core n."""
    detail = [{"id": cpu, "core": cpu % cores, "socket": 0, "node": 0} for cpu in range(2 * cores)]
    topology = {"apiVersion": "topology.node.k8s.io/v1alpha1", "kind": "NodeResourceTopology"}
    told = {"node.koordinator.sh/cpu-topology": json.dumps({"detail": detail})}
    toy.put({**topology, "metadata": {"name": name, "annotations": told}})
    toy.node(name, cpu=parts.pop("cpu", 2 * cores), memory="64Gi", **parts)


def test_a_pod_that_demands_whole_cores_waits_until_there_are_some(toy: Any) -> None:
    hyperthreaded(toy)
    spread_pods(toy, "thin", 3, {"requiredCPUBindPolicy": "SpreadByPCPUs"})
    toy.settle()
    assert toy.place_of("thin") == {"cpuset": "0-2"}
    spread_pods(toy, "thick", 4, {"requiredCPUBindPolicy": "FullPCPUs"})
    toy.settle()
    assert "1 node(s) have no 4 CPUs free that can be bound as the pod's FullPCPUs asks" in toy.message("thick")
    spread_pods(toy, "pair", 2, {"requiredCPUBindPolicy": "FullPCPUs"})
    toy.settle()
    assert (toy.where("thick"), toy.where("pair")) == ("", "n1")
    assert toy.place_of("pair") == {"cpuset": "3,7"}
    toy.finish("thin")
    toy.settle()
    assert toy.where("thick") == "n1"


def test_a_gang_is_counted_by_whole_cores_where_its_members_demand_them(toy: Any) -> None:
    hyperthreaded(toy)
    hyperthreaded(toy, "n2")
    spread_pods(toy, "p", 3, {"requiredCPUBindPolicy": "SpreadByPCPUs"}, count=4)
    toy.settle()
    assert sorted(toy.where(f"p-{at}") for at in range(4)) == ["n1", "n1", "n2", "n2"]


def test_the_label_of_a_node_says_how_cpus_are_bound_there(toy: Any) -> None:
    hyperthreaded(toy, labels={"node.koordinator.sh/cpu-bind-policy": "FullPCPUsOnly"})
    toy.pods("odd", requests={"cpu": 3}, labels=PINNED)
    toy.pods("even", requests={"cpu": 2}, labels=PINNED)
    toy.settle()
    assert (toy.where("odd"), toy.where("even")) == ("", "n1")


def test_a_pinned_pod_counts_for_more_on_an_amplified_node(toy: Any) -> None:
    """Eight CPUs stand for twelve; two of four take them all."""
    hyperthreaded(toy, cpu=12)
    node = toy.store.get(Key("Node", "", "n1"))
    amplified = {"node.koordinator.sh/resource-amplification-ratio": '{"cpu": 1.5}'}
    toy.put({**node.manifest(), "metadata": {"name": "n1", "annotations": amplified}})
    toy.pods("p", 2, requests={"cpu": 4}, labels=PINNED)
    toy.settle()
    assert [toy.place_of(f"p-{at}") for at in range(2)] == [{"cpuset": "0-1,4-5"}, {"cpuset": "2-3,6-7"}]
    toy.pods("shared", requests={"cpu": 1})
    toy.settle()
    assert toy.where("shared") == ""
    toy.finish("p-0")
    toy.settle()
    assert toy.where("shared") == "n1"
    toy.pods("again", requests={"cpu": 4}, labels=PINNED)
    toy.settle()
    assert toy.where("again") == ""
    assert "too little cpu for 4 CPUs of the pod's own" in toy.message("again")


def test_a_pod_that_is_to_have_cpus_of_its_own_asks_for_whole_ones(toy: Any) -> None:
    hyperthreaded(toy)
    toy.pods("p", requests={"cpu": "1500m"}, labels=PINNED)
    toy.settle()
    assert "1500m is not a whole number of CPUs" in toy.message("p")
