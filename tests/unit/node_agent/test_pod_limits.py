"""The limits of a pod over its whole life."""

from typing import Any

import pytest

from node_agent.domain.limits import whole_limits


def box(cpu: str, memory: str = "1Gi", **more: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"limits": {"cpu": cpu, "memory": memory}}, **more}


SIDE = {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("first", "main", "overhead", "cpu", "memory_gib"),
    [
        ([], [box("1"), box("2", "2Gi")], {}, 3000, 3),
        ([box("2", "4Gi")], [box("1")], {}, 2000, 4),
        ([box("500m")], [box("1"), box("1")], {}, 2000, 2),
        ([box("500m", **SIDE), box("1")], [box("1"), box("2")], {}, 3500, 3),
        ([box("500m", **SIDE), box("4")], [box("1"), box("2")], {}, 4500, 3),
        ([box("4"), box("500m", **SIDE)], [box("1"), box("2")], {}, 4000, 3),
        ([], [box("1")], {"cpu": "250m", "memory": "1Gi"}, 1250, 2),
    ],
)
def test_a_pod_has_what_its_largest_moment_needs(
    first: list[Any], main: list[Any], overhead: dict[str, str], cpu: int, memory_gib: int
) -> None:
    """Init containers run one after the other, each beside the sidecars before it; the overhead is always on top."""
    found = whole_limits({"spec": {"initContainers": first, "containers": main, "overhead": overhead}})
    assert (found.cpu_milli, found.memory_bytes) == (cpu, memory_gib << 30)
    assert found.cpu_request_milli == cpu


def test_one_container_without_a_limit_leaves_the_pod_without() -> None:
    free = {"name": "free", "resources": {"requests": {"cpu": "3"}}}
    for first, main in (([free], [box("1")]), ([], [box("1"), free])):
        found = whole_limits({"spec": {"initContainers": first, "containers": main}})
        assert (found.cpu_milli, found.memory_bytes) == (None, None)
    assert found.cpu_request_milli == 4000
