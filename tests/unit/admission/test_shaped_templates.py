"""Profiles and those who make pods: the templates are shaped, once, and an object that is applied again is no change."""

from typing import Any

import pytest

from admission.domain.admit import admit
from kube import Manifest, Store, from_manifest

QOS = "koordinator.sh/qosClass"
BATCH = "kubernetes.io/batch-cpu"


def world(**spec: Any) -> Store:
    """A namespace that opted in, its profile, and the queues that jobs need."""
    store = Store()
    for manifest in (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "offline", "labels": {"batch": "true"}}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "online"}},
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "low"}, "value": 5500},
        *(
            {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": {}}
            | {"status": {"state": "Open"}}
            for name in ("root", "default")
        ),
        profile(**spec),
    ):
        store.put(from_manifest(manifest, uid="u"))
    return store


def profile(**spec: Any) -> Manifest:
    api = {"apiVersion": "config.koordinator.sh/v1alpha1", "kind": "ClusterColocationProfile"}
    chosen = {"namespaceSelector": {"matchLabels": {"batch": "true"}}, "qosClass": "BE", "priorityClassName": "low"}
    return {**api, "metadata": {"name": "offline"}, "spec": {**chosen, **spec}}


def template() -> Manifest:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}
    return {"metadata": {"labels": {"app": "a"}}, "spec": {"restartPolicy": "Never", "containers": [container]}}


def volcano(namespace: str = "offline") -> Manifest:
    tasks = [{"name": "a", "replicas": 2, "template": template()}, {"name": "b", "replicas": 1, "template": template()}]
    metadata = {"name": "j", "namespace": namespace}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": {"tasks": tasks}}


def batch_job() -> Manifest:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "offline"},
        "spec": {"template": template()},
    }


def is_shaped(one: Manifest) -> bool:
    requests = one["spec"]["containers"][0]["resources"]["requests"]
    assert (QOS in one["metadata"]["labels"]) is (BATCH in requests) is (one["spec"].get("priority") == 5500)
    return BATCH in requests


def test_every_task_of_a_job_is_shaped_and_asks_for_what_is_lent() -> None:
    spec = admit(volcano(), None, world()).manifest["spec"]
    assert [is_shaped(task["template"]) for task in spec["tasks"]] == [True, True]
    assert spec["tasks"][0]["template"]["spec"]["containers"][0]["resources"]["requests"] == {BATCH: "2000"}


def test_templates_of_kubernetes_workloads_are_shaped_too() -> None:
    assert is_shaped(admit(batch_job(), None, world()).manifest["spec"]["template"])


def test_another_namespace_is_left_alone() -> None:
    job = admit(volcano("online"), None, world()).manifest
    assert not is_shaped(job["spec"]["tasks"][0]["template"])


def test_a_profile_that_draws_lots_does_not_draw_for_all_pods_at_once() -> None:
    job = admit(volcano(), None, world(probability="99%")).manifest
    assert not is_shaped(job["spec"]["tasks"][0]["template"])


@pytest.mark.parametrize("made", [volcano, batch_job])
def test_what_is_applied_again_is_no_change(made: Any) -> None:
    store = world()
    first = from_manifest(admit(made(), None, store).manifest, uid="j")
    again = from_manifest(admit(made(), first, store).manifest, uid="j")
    assert again.body == first.body


def test_what_was_there_before_the_profile_stays_plain() -> None:
    plain = world(namespaceSelector={"matchLabels": {"batch": "no"}})
    first = from_manifest(admit(volcano(), None, plain).manifest, uid="j")
    again = from_manifest(admit(volcano(), first, world()).manifest, uid="j")
    assert again.body == first.body
