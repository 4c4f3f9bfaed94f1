"""Workloads, their priorities and checks, devices, claims in templates: junk is refused, marks of quota are the system's."""

import copy
from typing import Any

import pytest

from kube import from_manifest

KUEUE = "kueue.x-k8s.io/v1beta2"
CONTAINER = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
MARK, OF = "tidegate.dev/admission", "tidegate.dev/workload-of"


def work(**changes: Any) -> dict[str, Any]:
    sets = [{"name": "main", "count": 3, "template": {"spec": {"containers": [CONTAINER]}}}]
    spec = {"queueName": "q", "podSets": sets, **changes}
    return {"apiVersion": KUEUE, "kind": "Workload", "metadata": {"name": "w"}, "spec": spec}


def made(kind: str, api: str, **parts: Any) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "x"}, **parts}


def a_set(**changes: Any) -> list[dict[str, Any]]:
    return [{"name": "main", "count": 3, "template": {"spec": {"containers": [CONTAINER]}}, **changes}]


def stateful_set(claim: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template, "volumeClaimTemplates": [claim]}
    return made("StatefulSet", "apps/v1", spec=spec)


def volcano_job(claim: Any) -> dict[str, Any]:
    tasks = [{"name": "t", "replicas": 1, "template": {"spec": {"containers": [CONTAINER]}}}]
    volumes = [{"mountPath": "/x", "volumeClaim": claim}]
    return made("Job", "batch.volcano.sh/v1alpha1", spec={"minAvailable": 1, "tasks": tasks, "volumes": volumes})


def pod_with(claim: Any) -> dict[str, Any]:
    volumes = [{"name": "v", "ephemeral": {"volumeClaimTemplate": claim}}]
    return made("Pod", "v1", spec={"containers": [CONTAINER], "volumes": volumes})


def few(least: str) -> dict[str, Any]:
    """A batch Job of three pods in a LocalQueue that may start with ``least`` of them."""
    metadata = {
        "name": "x",
        "labels": {"kueue.x-k8s.io/queue-name": "q"},
        "annotations": {"kueue.x-k8s.io/job-min-parallelism": least},
    }
    template = {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {"parallelism": 3, "template": template},
    }


def device(**changes: Any) -> dict[str, Any]:
    return made(
        "Device", "scheduling.koordinator.sh/v1alpha1", spec={"devices": [{"type": "gpu", "minor": 0, **changes}]}
    )


@pytest.mark.parametrize(
    ("manifest", "path"),
    [
        (work(podSets=[]), "spec.podSets"),
        (work(podSets="many"), "spec.podSets"),
        (work(podSets=a_set(count=-1)), "spec.podSets[0].count"),
        (work(podSets=a_set(minCount=4)), "spec.podSets[0].minCount"),
        (work(podSets=a_set() * 2), "spec.podSets[1].name"),
        (work(podSets=a_set(template="x")), "spec.podSets[0].template"),
        (
            work(podSets=a_set(template={"spec": {"containers": [{"resources": {"requests": {"cpu": "much"}}}]}})),
            "spec.podSets[0].template.spec.containers[0].resources.requests.cpu",
        ),
        (work(priority=1 << 40), "spec.priority"),
        (work(maximumExecutionTimeSeconds=0), "spec.maximumExecutionTimeSeconds"),
        ({**work(), "status": {"admissionChecks": ["x"]}}, "status.admissionChecks[0]"),
        (made("WorkloadPriorityClass", KUEUE, value="high"), "value"),
        (made("WorkloadPriorityClass", KUEUE), "value"),
        (made("AdmissionCheck", KUEUE, spec="x"), "spec"),
        (made("AdmissionCheck", KUEUE, spec={}, status={"conditions": [5]}), "status.conditions[0]"),
        (made("NodeMetric", "slo.koordinator.sh/v1alpha1", spec={}, status="x"), "status"),
        (device(minor="x"), "spec.devices[0].minor"),
        (device(topology=True), "spec.devices[0].topology"),
        (device(resources={"a/b": "x"}), 'spec.devices[0].resources["a/b"]'),
        (made("ClusterQueue", KUEUE, spec={"admissionChecksStrategy": "x"}), "spec.admissionChecksStrategy"),
        (made("ClusterQueue", KUEUE, spec={"cohortName": "No Name"}), "spec.cohortName"),
        (
            made("ClusterQueue", KUEUE, spec={"admissionScope": {"admissionMode": "x"}}),
            "spec.admissionScope.admissionMode",
        ),
        (made("Cohort", KUEUE, spec={"parentName": "No Name"}), "spec.parentName"),
        (made("LocalQueue", KUEUE, spec={"clusterQueue": "No Name"}), "spec.clusterQueue"),
        (made("AdmissionCheck", KUEUE, spec={}), "spec.controllerName"),
        (work(queueName="No Name"), "spec.queueName"),
        *(
            (few(least), 'metadata.annotations["kueue.x-k8s.io/job-min-parallelism"]')
            for least in ("0", "3", "-1", "two")
        ),
        (stateful_set({"metadata": {"name": "d"}, "spec": "x"}), "spec.volumeClaimTemplates[0].spec"),
        (stateful_set({"metadata": {"name": "A"}, "spec": CLAIM}), "spec.volumeClaimTemplates[0].metadata.name"),
        (
            stateful_set({"metadata": {"name": "d"}, "spec": {**CLAIM, "volumeName": [1]}}),
            "spec.volumeClaimTemplates[0].spec.volumeName",
        ),
        (volcano_job("x"), "spec.volumes[0].volumeClaim"),
        (volcano_job({"accessModes": ["Some"]}), "spec.volumes[0].volumeClaim.accessModes[0]"),
        (
            made("Pod", "v1", spec={"containers": [CONTAINER], "terminationGracePeriodSeconds": 10**15}),
            "spec.terminationGracePeriodSeconds",
        ),
        (pod_with({"spec": "x"}), "spec.volumes[0].ephemeral.volumeClaimTemplate.spec"),
        (
            pod_with({"spec": {"resources": {"requests": {"storage": "much"}}}}),
            "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests.storage",
        ),
    ],
)
def test_junk_is_refused_by_its_field(gate: Any, manifest: dict[str, Any], path: str) -> None:
    assert path in gate.wrong(manifest)


@pytest.mark.parametrize(
    "manifest",
    [
        work(),
        {**work(podSets=a_set(minCount=0)), "status": {"reclaimablePods": [{"name": "main", "count": 1}]}},
        made("WorkloadPriorityClass", KUEUE, value=-5),
        made("AdmissionCheck", KUEUE, spec={"controllerName": "a/b"}),
        few("2"),
        device(health=False, resources={"koordinator.sh/gpu-core": 100}, topology={"nodeID": -1, "pcieID": "0"}),
        stateful_set({"metadata": {"name": "d"}, "spec": CLAIM}),
        volcano_job({"storageClassName": "fast"}),
        pod_with({"metadata": {"labels": {"a": "b"}}, "spec": CLAIM}),
    ],
)
def test_what_makes_sense_is_let_in_and_again(gate: Any, manifest: dict[str, Any]) -> None:
    assert gate.apply(gate.apply(manifest))["kind"] == manifest["kind"]


def test_who_copies_an_object_that_holds_quota_gets_none(gate: Any) -> None:
    pod = made("Pod", "v1", spec={"containers": [CONTAINER]})
    pod["metadata"]["annotations"] = {MARK: '{"clusterQueue":"q"}', "mine": "1"}
    assert gate.apply(pod)["metadata"]["annotations"] == {"mine": "1"}
    job = volcano_job(CLAIM)
    job["spec"]["tasks"][0]["template"]["metadata"] = {"annotations": {MARK: "{}"}}
    assert MARK not in gate.apply(job)["spec"]["tasks"][0]["template"]["metadata"]["annotations"]


def test_an_update_neither_changes_nor_drops_what_an_object_holds(gate: Any) -> None:
    manifest = gate.apply(work())
    held = copy.deepcopy(manifest)
    held["metadata"]["annotations"] = {MARK: "{}"}
    gate.store.put(from_manifest(held, uid="u"))
    for given in ({}, {MARK: "other"}, {OF: "Pod/other"}):
        again = copy.deepcopy(manifest)
        again["metadata"]["annotations"] = given
        assert gate.apply(again)["metadata"]["annotations"] == {MARK: "{}"}


@pytest.mark.parametrize(("holds", "suspended"), [(True, True), (True, False), (False, False)])
def test_a_job_stays_in_its_queue_while_it_holds_quota_or_runs(gate: Any, holds: bool, suspended: bool) -> None:
    label = "kueue.x-k8s.io/queue-name"
    spec = {"template": {"spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}}
    job = made("Job", "batch/v1", spec=spec)
    job["metadata"]["labels"] = {label: "q"}
    stored = gate.apply(job)
    moved = copy.deepcopy(stored)
    moved["metadata"]["labels"] = {label: "other"}
    assert gate.apply(moved)["metadata"]["labels"] == {label: "other"}

    held = copy.deepcopy(stored)
    held["metadata"]["annotations"] = {MARK: "{}"} if holds else {}
    held["spec"]["suspend"] = suspended
    gate.store.put(from_manifest(held, uid="u"))
    assert f'metadata.labels["{label}"]' in gate.wrong(moved)
    left = copy.deepcopy(stored)
    left["metadata"]["labels"] = {}
    assert f'metadata.labels["{label}"]' in gate.wrong(left)
