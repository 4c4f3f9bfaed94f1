"""What pods ask of a node, worked out once for those that are alike."""

from typing import Any

from kube import Key, Object
from queue_manager.domain.pod_requests import PodRequests


def container(cpu: Any, **more: Any) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": cpu}}, **more}


def test_pods_of_a_template_share_their_request() -> None:
    """Also once they have a node."""
    requests = PodRequests()
    spec = {"containers": [container(1)]}
    first = Object(Key("Pod", "default", "a"), "1", body={"spec": spec})
    bound = Object(Key("Pod", "default", "b"), "2", body={"spec": {**spec, "nodeName": "n"}})
    assert requests.of(first) is requests.of(bound)
    assert requests.of(first) == {"cpu": 1000}
