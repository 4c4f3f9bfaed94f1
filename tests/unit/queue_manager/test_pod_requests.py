"""What a pod asks of a node, as the Kubernetes scheduler counts it."""

from typing import Any

import pytest

from kube import Key, Object
from kube.pods import pod_request
from queue_manager.domain.pod_requests import PodRequests


def container(cpu: Any, **more: Any) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": cpu}}, **more}


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"containers": [container(1), container("500m")]}, 1500),
        ({"containers": [container(1)], "initContainers": [container(3), container(2)]}, 3000),
        ({"containers": [container(1)], "initContainers": [container(2, restartPolicy="Always")]}, 3000),
        ({"containers": [container(1)], "initContainers": [container(2, restartPolicy="Always"), container(4)]}, 6000),
        ({"containers": [container(1)], "initContainers": [container(4), container(2, restartPolicy="Always")]}, 4000),
        ({"containers": [container(1)], "overhead": {"cpu": "250m"}}, 1250),
        ({"containers": [container(1)], "resources": {"requests": {"cpu": 2}}}, 2000),
        ({"containers": [container("much")]}, 0),
        ({}, 0),
    ],
)
def test_a_pods_request(spec: dict[str, Any], cpu: int) -> None:
    """Containers and sidecars together, or an init container beside the sidecars before it, and the overhead on top."""
    assert pod_request(spec).get("cpu", 0) == cpu


def test_pods_of_a_template_share_their_request() -> None:
    """Also once they have a node."""
    requests = PodRequests()
    spec = {"containers": [container(1)]}
    first = Object(Key("Pod", "default", "a"), "1", body={"spec": spec})
    bound = Object(Key("Pod", "default", "b"), "2", body={"spec": {**spec, "nodeName": "n"}})
    assert requests.of(first) is requests.of(bound)
    assert requests.of(first) == {"cpu": 1000}
