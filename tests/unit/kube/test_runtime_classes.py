"""What a RuntimeClass adds to pods, and what speaks against it."""

from typing import Any

from kube import Event, Manifest, Object, from_manifest
from kube.runtime_classes import RuntimeClasses, objections, with_class

SPEC = {"runtimeClassName": "vm", "containers": [{"name": "c"}]}


def runtime_class(**body: Any) -> Object:
    manifest: Manifest = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "vm"}, **body}
    return from_manifest(manifest)


FULL = runtime_class(
    overhead={"podFixed": {"cpu": "250m"}},
    scheduling={"nodeSelector": {"vm": "yes"}, "tolerations": [{"key": "vm", "operator": "Exists"}]},
)


def test_overhead_selector_and_tolerations_are_added_once() -> None:
    once = with_class({**SPEC, "nodeSelector": {"a": "b"}, "tolerations": [{"key": "x"}]}, FULL)
    assert once["overhead"] == {"cpu": "250m"}
    assert once["nodeSelector"] == {"a": "b", "vm": "yes"}
    assert once["tolerations"] == [{"key": "x"}, {"key": "vm", "operator": "Exists"}]
    assert with_class(once, FULL) is once
    assert "overhead" not in SPEC


def test_a_class_that_says_nothing_adds_nothing() -> None:
    assert with_class(SPEC, runtime_class(handler="runc")) is SPEC


def test_a_pod_may_repeat_what_its_class_says_and_not_contradict_it() -> None:
    assert not list(objections({**SPEC, "overhead": {"cpu": "0.25"}, "nodeSelector": {"vm": "yes"}}, FULL))
    assert not list(objections({**SPEC, "overhead": {"kubernetes.io/batch-cpu": "250"}}, FULL))
    contradicting = {**SPEC, "overhead": {"cpu": "1"}, "nodeSelector": {"vm": "no"}}
    assert list(objections(contradicting, FULL)) == [
        ("overhead", "overhead of RuntimeClass vm is cpu 250m, the pod's is cpu 1"),
        ("nodeSelector", "RuntimeClass vm is for nodes with vm=yes, the pod for vm=no"),
    ]
    assert list(objections({**SPEC, "overhead": {"cpu": "1"}}, runtime_class())) == [
        ("overhead", "overhead of RuntimeClass vm is none, the pod's is cpu 1")
    ]
    assert list(objections(SPEC, None)) == [("runtimeClassName", "RuntimeClass vm does not exist")]


def test_classes_complete_the_templates_of_jobs() -> None:
    known = RuntimeClasses()
    job = {"tasks": [{"template": {"spec": SPEC}}, {"template": {"spec": {"containers": []}}}]}
    assert known.in_templates(job) is job
    known.fold(Event(None, FULL))
    found = known.in_templates(job)
    assert found["tasks"][0]["template"]["spec"]["overhead"] == {"cpu": "250m"}
    assert found["tasks"][1] is job["tasks"][1]
    known.fold(Event(FULL, None))
    assert known.in_templates(job) is job
