"""Pods whose runtime class is missing, or is not what they need, wait with the reason."""

from typing import Any

from kube import Key


def runtime_class(toy: Any, **scheduling: Any) -> None:
    toy.put(
        {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": "vm"},
            "handler": "vm",
            "scheduling": scheduling,
        }
    )


def test_a_gang_waits_for_its_class_and_starts_when_it_comes(toy: Any) -> None:
    toy.node("n1", cpu=8)
    toy.group("g", 2)
    toy.pods("p", 2, cpu=1, group="g", runtimeClassName="vm")
    toy.pods("other", cpu=1)
    toy.settle()
    assert toy.bound() == ["other"]
    assert toy.message("p-0") == "pod p-0 waits for its runtime class: RuntimeClass vm does not exist"
    told = toy.explain("Pod", "p-0")
    assert told["rule"] == "RuntimeClassUnfit"
    assert told["waysOut"] == [
        "create the RuntimeClass, or make a pod that names one that exists and asks for nothing else than it does"
    ]
    runtime_class(toy)
    toy.settle()
    assert toy.bound() == ["other", "p-0", "p-1"]


def test_a_pod_that_contradicts_its_class_waits_and_one_that_runs_stays(toy: Any) -> None:
    toy.node("n1", cpu=8, labels={"vm": "no"})
    runtime_class(toy, nodeSelector={"vm": "yes"})
    toy.pods("p", cpu=1, runtimeClassName="vm", nodeSelector={"vm": "no"})
    toy.settle()
    assert "is for nodes with vm=yes, the pod for vm=no" in toy.message("p")
    runtime_class(toy, nodeSelector={"vm": "no"})
    toy.settle()
    assert toy.bound() == ["p"]
    toy.delete(Key("RuntimeClass.node.k8s.io", "", "vm"))
    toy.settle()
    assert toy.bound() == ["p"]
