"""Pods of controllers get what their RuntimeClass adds, whichever of the two comes first."""

from typing import Any

from kube import Key

SPEC = {"containers": [{"name": "c"}], "runtimeClassName": "vm"}


def runtime_class(town: Any, selector: str = "yes") -> None:
    body = {"overhead": {"podFixed": {"cpu": "1"}}, "scheduling": {"nodeSelector": {"vm": selector}}}
    town.cluster.create(Key("RuntimeClass.node.k8s.io", "", "vm"), {}, body, {})
    town.react()


def overheads(town: Any) -> list[Any]:
    return [pod.spec.get("overhead") for pod in town.pods()]


def test_a_pod_of_a_class_is_made_with_its_overhead_and_pods_of_one_template_share_it(slow_town: Any) -> None:
    runtime_class(slow_town)
    template = {"metadata": {"labels": {"a": "b"}}, "spec": SPEC}
    slow_town.apply("ReplicaSet", "r", {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template})
    assert overheads(slow_town) == [{"cpu": "1"}, {"cpu": "1"}]
    assert all(pod.spec["nodeSelector"] == {"vm": "yes"} for pod in slow_town.pods())
    assert "overhead" not in SPEC


def test_a_pod_that_came_before_its_class_gets_it_while_it_has_no_node(slow_town: Any) -> None:
    slow_town.apply("Pod", "p", SPEC)
    slow_town.apply("Pod", "q", {**SPEC, "nodeName": "n"})
    assert overheads(slow_town) == [None, None]
    runtime_class(slow_town)
    assert overheads(slow_town) == [{"cpu": "1"}, None]


def test_a_pod_that_contradicts_its_class_stays_as_it_is(slow_town: Any) -> None:
    slow_town.apply("Pod", "p", {**SPEC, "nodeSelector": {"vm": "no"}})
    runtime_class(slow_town)
    assert overheads(slow_town) == [None]
