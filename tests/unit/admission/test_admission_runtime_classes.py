"""RuntimeClasses, and pods that name one."""

from typing import Any

import pytest

CLASS = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "vm"},
    "handler": "kata",
    "overhead": {"podFixed": {"cpu": "250m"}},
    "scheduling": {"nodeSelector": {"vm": "yes"}, "tolerations": [{"key": "vm", "value": "x"}]},
}


def pod(**spec: Any) -> dict[str, Any]:
    spec = {"runtimeClassName": "vm", "containers": [{"name": "c", "image": "busybox"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def test_a_pod_gets_what_its_class_says_and_keeps_it_in_updates(gate: Any) -> None:
    gate.apply(CLASS)
    for _ in range(2):
        spec = gate.apply(pod())["spec"]
        assert (spec["overhead"], spec["nodeSelector"]) == ({"cpu": "250m"}, {"vm": "yes"})
        assert spec["tolerations"] == [{"key": "vm", "value": "x", "operator": "Equal"}]


@pytest.mark.parametrize(
    ("spec", "path", "text"),
    [
        ({"runtimeClassName": "gone"}, "spec.runtimeClassName", "RuntimeClass gone does not exist"),
        ({"overhead": {"cpu": "1"}}, "spec.overhead", "is cpu 250m, the pod's is cpu 1"),
        ({"nodeSelector": {"vm": "no"}}, "spec.nodeSelector", "is for nodes with vm=yes, the pod for vm=no"),
    ],
)
def test_a_new_pod_that_cannot_be_of_its_class_is_refused(gate: Any, spec: Any, path: str, text: str) -> None:
    gate.apply(CLASS)
    assert text in gate.wrong(pod(**spec))[path]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"handler": None}, "handler"),
        ({"handler": "Not A Name"}, "handler"),
        ({"overhead": {"podFixed": {"cpu": "much"}}}, "overhead.podFixed.cpu"),
        ({"overhead": "much"}, "overhead"),
        ({"scheduling": {"tolerations": [{"key": "a", "operator": "Maybe"}]}}, "scheduling.tolerations[0].operator"),
    ],
)
def test_a_class_that_makes_no_sense_is_refused(gate: Any, change: Any, path: str) -> None:
    assert path in gate.wrong({**CLASS, **change})


def test_the_handler_of_a_class_stays(gate: Any) -> None:
    gate.apply(CLASS)
    assert "must stay kata" in gate.wrong({**CLASS, "handler": "runc"})["handler"]
