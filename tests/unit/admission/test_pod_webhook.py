"""Pods under review of an API server: what is made of them, and what is refused."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.domain.pod_review import choose_scheduler, shape_pod
from admission.domain.webhook import answer_pod
from admission.domain.world import Review
from kube import Manifest, Store, from_manifest, key_of

QOS = "koordinator.sh/qosClass"


def pod(labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "web-", **({"labels": labels} if labels else {})},
        "spec": {"schedulerName": "default-scheduler", "containers": [container], **spec},
    }


def stored(*manifests: Manifest) -> Store:
    store = Store()
    for manifest in manifests:
        store.put(from_manifest(manifest))
    return store


def profile(name: str = "offline", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "config.koordinator.sh/v1alpha1",
        "kind": "ClusterColocationProfile",
        "metadata": {"name": name},
        "spec": spec,
    }


def asked(
    manifest: Manifest, shape: Any, store: Store | None = None, old: Manifest | None = None, uid: str = "r"
) -> dict[str, Any]:
    operation = "UPDATE" if old else "CREATE"
    request = {"uid": uid, "operation": operation, "object": manifest, "oldObject": old, "namespace": "team"}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    response: dict[str, Any] = answer_pod(review, store or Store(), shape)["response"]
    return response


def patched(response: dict[str, Any]) -> dict[str, Any]:
    operations = json.loads(base64.b64decode(response["patch"])) if "patch" in response else []
    return {one["path"]: one["value"] for one in operations}


def ours(review: Review) -> None:
    choose_scheduler(review, "tidegate")


@pytest.mark.parametrize(
    ("given_", "chosen"),
    [
        ({}, "tidegate"),
        ({"schedulerName": "volcano"}, None),
        ({"nodeName": "n1"}, None),
        ({"schedulerName": ""}, "tidegate"),
    ],
)
def test_a_pod_that_names_nobody_is_placed_by_us(given_: dict[str, Any], chosen: str | None) -> None:
    spec = patched(asked(pod(**given_), [ours])).get("/spec")

    assert (spec and spec["schedulerName"]) == chosen


def test_a_pod_that_exists_keeps_its_scheduler() -> None:
    assert "patch" not in asked(pod(), [ours], old=pod())


def test_a_profile_of_the_namespace_makes_a_batch_pod_of_a_plain_one() -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": {"batch": "yes"}}}
    shape = profile(
        namespaceSelector={"matchLabels": {"batch": "yes"}},
        qosClass="BE",
        labels={"koordinator.sh/priority-class": "koord-batch"},
    )

    found = patched(asked(pod(), [shape_pod], stored(namespace, shape)))

    assert found["/metadata/labels"][QOS] == "BE"
    assert found["/spec"]["containers"][0]["resources"]["requests"]["kubernetes.io/batch-cpu"] == "1000"


def test_the_overhead_of_a_runtime_class_stays_as_the_api_server_has_it() -> None:
    """It refuses a pod with any other than that of the class; without a class nobody compares it."""
    shape = profile(qosClass="BE", labels={"koordinator.sh/priority-class": "koord-batch"})
    for more, overhead in (
        ({"runtimeClassName": "vm"}, {"cpu": "250m"}),
        ({}, {"kubernetes.io/batch-cpu": "250"}),
    ):
        found = patched(asked(pod(overhead={"cpu": "250m"}, **more), [shape_pod], stored(shape)))
        assert found["/spec"]["overhead"] == overhead


def test_what_does_not_go_together_is_refused_when_it_comes_and_not_when_it_changes() -> None:
    wrong = pod({QOS: "LSE"})

    assert asked(wrong, [])["allowed"] is False
    assert asked({**wrong, "metadata": {**wrong["metadata"], "finalizers": []}}, [], old=wrong)["allowed"] is True


def test_the_class_of_a_pod_stays_what_it_was() -> None:
    before, after = pod({QOS: "LS"}), pod({QOS: "BE"})

    assert QOS in asked(after, [], old=before)["status"]["message"]


def test_pods_without_names_are_drawn_one_by_one_and_once() -> None:
    """By the uid of the question; when the API server asks again, with another one, what was drawn stays."""
    store = stored(profile(probability="50%", labels={"drawn": "yes"}))
    drawn = 0
    for number in range(200):
        first = patched(asked(pod(), [shape_pod], store, uid=f"r{number}"))
        drawn += "/metadata/labels" in first
        again = pod()
        again["metadata"] |= {path.rpartition("/")[2]: part for path, part in first.items() if "metadata" in path}
        assert "patch" not in asked(again, [shape_pod], store, uid=f"again{number}")
    assert 70 < drawn < 130


LABELS = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.sampled_from(["x", "y"]), max_size=2)


@given(
    LABELS,
    st.lists(
        st.fixed_dictionaries({}, optional={"labels": LABELS, "labelSuffixes": LABELS, "annotations": LABELS}),
        max_size=3,
    ),
)
def test_a_pod_that_is_asked_about_twice_is_changed_once(labels: dict[str, str], specs: list[dict[str, Any]]) -> None:
    """Where no two profiles lengthen one label."""
    store = stored(*(profile(f"p{index}", **spec) for index, spec in enumerate(specs)))
    once = pod(labels)
    shape_pod(Review(key_of(once), once, None, store))
    twice = json.loads(json.dumps(once))

    shape_pod(Review(key_of(twice), twice, None, store))

    lengthened = [key for spec in specs for key in spec.get("labelSuffixes", {})]
    if len(lengthened) == len(set(lengthened)):
        assert twice == once


@pytest.mark.parametrize("others", [{}, {"a": "b"}])
def test_a_new_pod_says_nothing_of_what_a_binding_gives(others: dict[str, str]) -> None:
    """Else it would have cards, CPUs or a reservation by its own word."""
    forged = {"tidegate.dev/devices": '{"nvidia.com/gpu":[0]}', "scheduling.koordinator.sh/resource-status": "{}"}
    manifest = pod()
    manifest["metadata"]["annotations"] = {**forged, **others}
    assert patched(asked(manifest, [shape_pod])) == {"/metadata/annotations": others}
