"""Reviews of an API server: a patch that fills in, or every fault; what is the server's stays."""

import base64
import json
from typing import Any

from admission.domain.webhook import answer
from kube import Store


def review(manifest: dict[str, Any], operation: str = "CREATE", old: dict[str, Any] | None = None) -> dict[str, Any]:
    request = {"uid": "r1", "operation": operation, "object": manifest, "oldObject": old, "namespace": "default"}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def job(**spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "default", "managedFields": [{"manager": "kubectl"}]},
        "spec": {"tasks": [{"replicas": 2, "template": template}], **spec},
    }


def patched(response: dict[str, Any]) -> list[dict[str, Any]]:
    return json.loads(base64.b64decode(response["patch"]))


def test_defaults_come_as_a_patch_of_our_parts_alone() -> None:
    response = answer(review(job()), Store(), patch=True)["response"]

    assert (response["uid"], response["allowed"]) == ("r1", True)
    operations = {one["path"]: one["value"] for one in patched(response)}
    assert operations["/spec"]["minAvailable"] == 2
    assert operations["/spec"]["tasks"][0]["name"] == "default0"
    assert not [path for path in operations if "managedFields" in path]


def test_a_validating_review_patches_nothing() -> None:
    assert "patch" not in answer(review(job()), Store(), patch=False)["response"]


def test_every_fault_is_named_with_its_field() -> None:
    response = answer(review(job(minAvailable=5, maxRetry=-1)), Store(), patch=True)["response"]

    assert response["allowed"] is False
    assert response["status"]["code"] == 422
    assert "spec.minAvailable" in response["status"]["message"]
    assert "spec.maxRetry" in response["status"]["message"]


def test_an_update_is_judged_against_what_was_there() -> None:
    before = job(minAvailable=1)
    before["metadata"]["uid"] = "u1"
    after = job(minAvailable=1)
    after["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["image"] = "other"

    response = answer(review(after, "UPDATE", before), Store(), patch=True)["response"]

    assert response["allowed"] is False


def test_a_deletion_that_may_not_be_is_refused() -> None:
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "default", "uid": "u1"},
        "spec": {},
    }

    response = answer(review({}, "DELETE", queue), Store(), patch=False)["response"]

    assert response["allowed"] is False
    assert "default" in response["status"]["message"]
