"""Kubernetes' own PodGroups and Workloads: one policy each, and no more templates than Kubernetes takes."""

from typing import Any

import pytest

from admission.domain.admit import admit
from admission.domain.errors import Rejected
from kube import Store, from_manifest

GANG = {"gang": {"minCount": 2}}


def manifest(kind: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": kind,
        "metadata": {"name": "g", "namespace": "default"},
        "spec": spec,
    }


def wrong(given: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    """The fields that are refused."""
    before = from_manifest(old, uid="u", revision=1) if old else None
    try:
        admit(given, before, Store())
    except Rejected as rejected:
        return [error.path for error in rejected.errors]
    return []


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        ({}, "spec.schedulingPolicy"),
        ({"basic": {}, **GANG}, "spec.schedulingPolicy"),
        ({"gang": {}}, "spec.schedulingPolicy.gang.minCount"),
        ({"gang": {"minCount": 0}}, "spec.schedulingPolicy.gang.minCount"),
    ],
)
def test_a_group_has_one_policy(policy: Any, field: str) -> None:
    assert wrong(manifest("PodGroup", schedulingPolicy=policy)) == [field]


@pytest.mark.parametrize("policy", [GANG, {"basic": {}}])
def test_both_policies_are_taken(policy: Any) -> None:
    assert wrong(manifest("PodGroup", schedulingPolicy=policy)) == []


def test_a_policy_is_not_changed() -> None:
    old = manifest("PodGroup", schedulingPolicy=GANG)
    assert wrong(manifest("PodGroup", schedulingPolicy={"basic": {}}), old) == ["spec.schedulingPolicy"]
    assert wrong(old, old) == []


def test_a_workload_has_a_few_templates_of_different_names() -> None:
    one = {"name": "a", "schedulingPolicy": GANG}
    assert wrong(manifest("Workload", podGroupTemplates=[one])) == []
    assert wrong(manifest("Workload", podGroupTemplates=[])) == ["spec.podGroupTemplates"]
    assert wrong(manifest("Workload", podGroupTemplates=[one, one])) == ["spec.podGroupTemplates[1].name"]
    many = [{**one, "name": f"t{number}"} for number in range(9)]
    assert wrong(manifest("Workload", podGroupTemplates=many)) == ["spec.podGroupTemplates"]


def test_what_nobody_acts_on_is_told() -> None:
    given = manifest("PodGroup", schedulingPolicy=GANG, disruptionMode="PodGroup")
    assert admit(given, None, Store()).warnings == ("spec.disruptionMode: it is kept, and nobody acts on it",)
