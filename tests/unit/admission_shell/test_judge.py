"""What a manifest names may have been made just before it: reviews wait a moment for it, and for nothing else."""

from typing import Any

from admission.webhooks.judge import HEARD_SECONDS, Judge


def review(name: str, parent: str, **spec: Any) -> dict[str, Any]:
    """The review of a new Queue."""
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"parent": parent, **spec},
    }
    request = {"uid": "u", "operation": "CREATE", "name": name, "object": queue}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def test_a_queue_waits_a_moment_for_its_parent(desk: Any) -> None:
    judging = desk.begin(Judge(desk.view).judged(review("child", "dept"), patch=False))
    assert not judging.done()

    desk.apply(review("dept", "root")["request"]["object"])

    desk.loop.settle()
    assert judging.result()["response"]["allowed"]


def test_what_does_not_come_is_refused_after_a_moment(desk: Any) -> None:
    judging = desk.begin(Judge(desk.view).judged(review("child", "dept"), patch=False))
    assert not judging.done()

    desk.loop.advance(int(HEARD_SECONDS * 1000))

    assert "queue dept does not exist" in judging.result()["response"]["status"]["message"]


def test_what_is_right_is_answered_at_once(desk: Any) -> None:
    assert desk.do(Judge(desk.view).judged(review("child", "root"), patch=False))["response"]["allowed"]
