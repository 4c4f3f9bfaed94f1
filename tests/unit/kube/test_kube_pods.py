"""What a pod asks of a node, as the Kubernetes scheduler counts it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.pods import asked_probes, container_request, pod_request, sound_pod_request
from resources import QuantityError


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
        ({"containers": [container("much"), container(1)]}, 1000),
        ({"containers": [{"resources": {"limits": {"cpu": 2}}}]}, 2000),
        ({"containers": [{"resources": {"limits": {"cpu": 2}, "requests": {"cpu": 1}}}]}, 1000),
        ({}, 0),
    ],
)
def test_a_pods_request(spec: dict[str, Any], cpu: int) -> None:
    """Containers and sidecars together, or an init container beside the sidecars before it, and the overhead on top."""
    assert sound_pod_request(spec).get("cpu", 0) == cpu


def test_what_is_no_quantity_is_named() -> None:
    with pytest.raises(QuantityError, match="cpu"):
        pod_request({"containers": [container("much")]})
    assert container_request({"resources": {"limits": {"x.dev/gpu": "2"}}}) == {"x.dev/gpu": 2}


PARTS = st.fixed_dictionaries({"cpu": st.integers(0, 9), "memory": st.integers(0, 9)}).flatmap(
    lambda amounts: st.sets(st.sampled_from(sorted(amounts))).map(lambda names: {n: amounts[n] for n in sorted(names)})
)
CONTAINER = PARTS.map(lambda amounts: {"resources": {"requests": amounts}})
FIRST = st.tuples(CONTAINER, st.booleans()).map(
    lambda one: {**one[0], **({"restartPolicy": "Always"} if one[1] else {})}
)


def moments(spec: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """The containers that run at each moment of the pod's life."""
    sidecars: list[dict[str, Any]] = []
    found = []
    for one in spec["initContainers"]:
        found.append([*sidecars, one])
        if "restartPolicy" in one:
            sidecars.append(one)
    return [*found, [*sidecars, *spec["containers"]]]


@given(st.lists(CONTAINER, max_size=3), st.lists(FIRST, max_size=4), PARTS)
def test_a_pod_asks_for_the_most_that_it_needs_at_any_moment(
    containers: list[Any], first: list[Any], overhead: dict[str, int]
) -> None:
    spec = {"containers": containers, "initContainers": first, "overhead": overhead}
    found = pod_request(spec)
    for name, unit in (("cpu", 1000), ("memory", 1)):
        at = [sum(one["resources"]["requests"].get(name, 0) for one in running) for running in moments(spec)]
        assert found.get(name, 0) == (max(at) + overhead.get(name, 0)) * unit


def test_probes_that_others_ask_for_have_a_domain_in_their_name() -> None:
    asked = '{"a.dev/x": {"tcpSocket": {"port": 1}}, "Ready": {"tcpSocket": {"port": 1}}, "a.dev/y": 5}'
    assert asked_probes({"tidegate.dev/probes": asked}) == {"a.dev/x": {"tcpSocket": {"port": 1}}}
    assert asked_probes({"tidegate.dev/probes": "[1"}) == {} == asked_probes({"tidegate.dev/probes": "[1]"})
