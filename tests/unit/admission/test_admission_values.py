"""Values that no machine can mean: wrong types deep inside, amounts and numbers without measure."""

import copy
from typing import Any

import pytest

from admission.domain.admit import read_key
from admission.domain.errors import Rejected
from admission.domain.shapes import MOST_PODS

CONTAINER: dict[str, Any] = {"name": "c", "image": "busybox", "command": ["true"]}


def pod(container: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    containers = [{**CONTAINER, **(container or {})}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers, **spec}}


def node(spec: Any = None, **status: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": spec or {}, "status": status}


@pytest.mark.parametrize(
    ("source", "path"),
    [
        (-1, "spec.containers[0].env[0].valueFrom"),
        ([{}], "spec.containers[0].env[0].valueFrom"),
        ({}, "spec.containers[0].env[0].valueFrom"),
        ({"configMapKeyRef": "all"}, "spec.containers[0].env[0].valueFrom.configMapKeyRef"),
        ({"configMapKeyRef": {"name": "c"}}, "spec.containers[0].env[0].valueFrom.configMapKeyRef.key"),
        ({"fieldRef": {"fieldPath": 3}}, "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath"),
        ({"fieldRef": {"fieldPath": "a"}, "secretKeyRef": {}}, "spec.containers[0].env[0].valueFrom"),
    ],
)
def test_a_variable_has_one_source_that_says_where_the_value_is(gate: Any, source: Any, path: str) -> None:
    assert list(gate.wrong(pod({"env": [{"name": "A", "valueFrom": source}]}))) == [path]


@pytest.mark.parametrize(
    ("container", "path"),
    [
        ({"readinessProbe": {"httpGet": {"path": []}}}, "spec.containers[0].readinessProbe.httpGet.path"),
        ({"startupProbe": {"periodSeconds": 1e300}}, "spec.containers[0].startupProbe.periodSeconds"),
        ({"lifecycle": {"preStop": {"exec": {"command": "a"}}}}, "spec.containers[0].lifecycle.preStop.exec.command"),
        ({"envFrom": [{"configMapRef": {"name": []}}]}, "spec.containers[0].envFrom[0].configMapRef.name"),
    ],
)
def test_what_a_container_is_given_has_its_types(gate: Any, container: dict[str, Any], path: str) -> None:
    assert list(gate.wrong(pod(container))) == [path]


def test_a_volume_has_the_types_of_its_kind(gate: Any) -> None:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": [[1]]}}
    assert list(gate.wrong(pod(volumes=[volume]))) == ["spec.volumes[0].persistentVolumeClaim.claimName"]


@pytest.mark.parametrize(
    ("manifest", "path"),
    [
        (node({"taints": [["a"]]}), "spec.taints[0]"),
        (node({"taints": [{"key": "a", "effect": "Never"}]}), "spec.taints[0].effect"),
        (node({"taints": [{"effect": "NoSchedule"}]}), "spec.taints[0].key"),
        (node({"unschedulable": -1}), "spec.unschedulable"),
        (node(allocatable=0), "status.allocatable"),
        (node(allocatable={"cpu": [{}]}), "status.allocatable.cpu"),
        (node(allocatable={"memory": "9999Ei"}), "status.allocatable.memory"),
        (node(capacity={"cpu": 1_000_000_000}), "status.capacity.cpu"),
        (node(allocatable={"nvidia.com/gpu": "1e12"}), 'status.allocatable["nvidia.com/gpu"]'),
        (node(conditions=["Ready"]), "status.conditions[0]"),
    ],
)
def test_a_node_that_cannot_be_is_refused_by_field(gate: Any, manifest: dict[str, Any], path: str) -> None:
    assert list(gate.wrong(manifest)) == [path]


def test_a_node_that_can_be_keeps_its_status(gate: Any) -> None:
    taints = [{"key": "a/b", "value": "", "effect": "NoExecute"}]
    manifest = node({"taints": taints}, allocatable={"cpu": "64", "memory": "4Ti", "example.com/gpu": 8})
    assert gate.apply(copy.deepcopy(manifest))["status"] == manifest["status"]


TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}
MANY = MOST_PODS + 1


@pytest.mark.parametrize(
    ("api", "kind", "spec", "path"),
    [
        (
            "batch.volcano.sh/v1alpha1",
            "Job",
            {"minAvailable": 1, "tasks": [{"name": "t", "replicas": MANY, "minAvailable": 1, "template": TEMPLATE}]},
            "spec.tasks[0].replicas",
        ),
        ("batch/v1", "Job", {"parallelism": MANY, "template": TEMPLATE}, "spec.parallelism"),
        (
            "batch/v1",
            "Job",
            {"completionMode": "Indexed", "completions": MANY, "template": TEMPLATE},
            "spec.completions",
        ),
        (
            "kubeflow.org/v1",
            "PyTorchJob",
            {
                "pytorchReplicaSpecs": {
                    "Worker": {
                        "replicas": MANY,
                        "template": {"spec": {"containers": [{**CONTAINER, "name": "pytorch"}]}},
                    }
                }
            },
            "spec.pytorchReplicaSpecs.Worker.replicas",
        ),
        (
            "apps/v1",
            "Deployment",
            {
                "replicas": MANY,
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": TEMPLATE["metadata"], "spec": {"containers": [CONTAINER]}},
            },
            "spec.replicas",
        ),
    ],
)
def test_nobody_asks_for_more_pods_than_a_cluster_could_ever_hold(
    gate: Any, api: str, kind: str, spec: dict[str, Any], path: str
) -> None:
    wrong = gate.wrong({"apiVersion": api, "kind": kind, "metadata": {"name": "j"}, "spec": spec})
    assert wrong == {path: f"{MANY}: must be from 0 to {MOST_PODS}"}


@pytest.mark.parametrize(
    ("manifest", "path"),
    [
        ({"apiVersion": "100m", "kind": "ConfigMap", "metadata": {"name": "a"}}, "apiVersion"),
        ({"apiVersion": [[1]], "kind": "ConfigMap", "metadata": {"name": "a"}}, "apiVersion"),
        ({"apiVersion": "v1", "kind": "Nothing", "metadata": {"name": "a"}}, "kind"),
        ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": "a"}, "metadata"),
        ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ["a"]}}, "metadata.name"),
        ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": {}}}, "metadata.namespace"),
    ],
)
def test_what_has_no_key_is_refused_by_field(manifest: dict[str, Any], path: str) -> None:
    with pytest.raises(Rejected) as refused:
        read_key(manifest)
    assert [error.path for error in refused.value.errors] == [path]
