"""Pod sets with a grant on nodes that have a topology: bound where the layout says, in the order of their numbers."""

import json
from typing import Any

import pytest

LABEL = "kueue.x-k8s.io/queue-name"
ADMISSION = "tidegate.dev/admission"
PODSET = "kueue.x-k8s.io/podset-"
INDEX = "training.kubeflow.org/replica-index"
BLOCK, RACK, HOST = "example.com/block", "example.com/rack", "kubernetes.io/hostname"
GRANT = json.dumps(
    {"clusterQueue": "cq", "flavors": {"cpu": "f"}, "usage": {"cpu": 10**9}, "topology": [BLOCK, RACK, HOST]}
)


@pytest.fixture
def dc(toy: Any) -> Any:
    """Block b0 with racks r0 (one cpu) and r1 (three nodes of one), b1 with r2 (two cpus on one node) and r3 (one)."""
    toy.queues = {"default": {}, "cohort/cq": {}}
    nodes = {"x3": ("b0", "r0", 1), "x5": ("b0", "r1", 1), "x1": ("b0", "r1", 1), "x6": ("b0", "r1", 1)}
    nodes |= {"x4": ("b1", "r2", 2), "x2": ("b1", "r3", 1)}
    for name, (block, rack, cpu) in nodes.items():
        toy.node(name, cpu=cpu, labels={BLOCK: block, RACK: rack})
    return toy


def group(toy: Any, name: str, least: int) -> None:
    toy.put(
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": name, "labels": {LABEL: "lq"}, "annotations": {ADMISSION: GRANT}},
            "spec": {"minMember": least},
            "status": {"phase": "Inqueue"},
        }
    )


def members(toy: Any, name: str, count: int, first: int = 0, role: str = "w", spec: Any = None, **asked: str) -> None:
    """Pods ``<name>-<role>-<i>``; ``asked`` are the annotations of pod sets without their prefix, ``_`` for ``-``."""
    annotations = {PODSET + key.replace("_", "-"): value for key, value in asked.items()}
    annotations |= {"scheduling.k8s.io/group-name": name, "volcano.sh/task-spec": role}
    for index in range(first, first + count):
        labels = {LABEL: "lq", INDEX: str(index), "job": name}
        container = {"name": "c", "resources": {"requests": {"cpu": 1}}}
        toy.put(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"{name}-{role}-{index}", "labels": labels, "annotations": annotations},
                "spec": {"schedulerName": "tidegate", "containers": [container], **(spec or {})},
                "status": {"phase": "Pending"},
            }
        )


def places(toy: Any, name: str, count: int, role: str = "w") -> list[str]:
    return [toy.where(f"{name}-{role}-{index}") for index in range(count)]


def test_pods_go_to_the_nodes_in_the_order_of_their_numbers(dc: Any) -> None:
    group(dc, "g", 3)
    members(dc, "g", 3, required_topology=RACK)
    dc.settle()
    assert places(dc, "g", 3) == ["x1", "x5", "x6"]


def test_a_set_that_finds_no_domain_is_told_which_comes_nearest(dc: Any) -> None:
    group(dc, "g", 4)
    members(dc, "g", 4, required_topology=RACK)
    dc.settle()
    assert dc.bound() == []
    answer = dc.explain("PodGroup", "g")
    assert answer["rule"] == "TopologyPlacementFailed"
    words = f"no {RACK} holds the 4 pods of g: r1, the one with most room, has room for 3"
    assert words in answer["message"]


def test_a_replacement_stays_in_the_domain_of_its_set_or_waits(dc: Any) -> None:
    group(dc, "g", 2)
    members(dc, "g", 2, required_topology=BLOCK)
    dc.settle()
    assert places(dc, "g", 2) == ["x4", "x4"]
    dc.delete(dc.pod("g-w-1").key)
    dc.pods("used", cpu=1, node="x4")
    dc.pods("more", cpu=1, node="x2")
    members(dc, "g", 1, first=2, required_topology=BLOCK)
    dc.settle()
    assert dc.where("g-w-2") == ""
    dc.delete(dc.pod("more").key)
    dc.settle()
    assert dc.where("g-w-2") == "x2"


def test_a_set_that_may_start_with_less_goes_where_all_of_it_fits_and_stays_together(dc: Any) -> None:
    group(dc, "g", 2)
    members(dc, "g", 3, required_topology=RACK)
    dc.settle()
    assert places(dc, "g", 3) == ["x1", "x5", "x6"]
    members(dc, "g", 1, first=3, required_topology=RACK)
    dc.settle()
    assert dc.where("g-w-3") == ""


def test_a_set_that_only_prefers_a_domain_is_replaced_near_it_or_elsewhere(dc: Any) -> None:
    group(dc, "g", 2)
    members(dc, "g", 2, preferred_topology=RACK)
    dc.settle()
    dc.delete(dc.pod("g-w-1").key)
    dc.pods("used", cpu=1, node="x4")
    dc.pods("more", cpu=1, node="x2")
    members(dc, "g", 1, first=2, preferred_topology=RACK)
    dc.settle()
    assert dc.where("g-w-2") in {"x1", "x3", "x5", "x6"}


def test_a_node_that_is_not_ready_is_left_for_another_one_of_the_rack(dc: Any) -> None:
    group(dc, "g", 2)
    members(dc, "g", 2, required_topology=RACK, preferred_topology=RACK)
    dc.settle()
    dc.delete(dc.pod("g-w-0").key, dc.pod("g-w-1").key)
    dc.node("x4", cpu=2, labels={BLOCK: "b1", RACK: "r2"}, spec={"unschedulable": True})
    members(dc, "g", 2, first=2, required_topology=RACK)
    dc.settle()
    assert [dc.where("g-w-2"), dc.where("g-w-3")] == ["x1", "x5"]


def test_sets_of_one_group_share_a_domain(dc: Any) -> None:
    group(dc, "g", 3)
    members(dc, "g", 1, role="launcher", required_topology=RACK, group_name="all")
    members(dc, "g", 2, required_topology=RACK, group_name="all")
    dc.settle()
    assert {*places(dc, "g", 1, "launcher"), *places(dc, "g", 2)} == {"x1", "x5", "x6"}


def test_pods_that_keep_each_other_apart_find_the_domain_where_they_can(dc: Any) -> None:
    apart = {"labelSelector": {"matchLabels": {"job": "g"}}, "topologyKey": HOST}
    spec = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}}
    group(dc, "g", 2)
    members(dc, "g", 2, spec=spec, required_topology=RACK)
    dc.settle()
    assert len(set(places(dc, "g", 2))) == 2
    assert set(places(dc, "g", 2)) <= {"x1", "x5", "x6"}


def test_pods_of_one_role_that_ask_for_more_or_less_share_a_domain_in_which_each_has_its_room(dc: Any) -> None:
    dc.node("x8", cpu=3, labels={BLOCK: "b1", RACK: "r4"})
    large = {"containers": [{"name": "c", "resources": {"requests": {"cpu": 2}}}]}
    group(dc, "g", 2)
    members(dc, "g", 1, required_topology=RACK)
    members(dc, "g", 1, first=1, spec=large, required_topology=RACK)
    dc.settle()
    assert places(dc, "g", 2) == ["x8", "x8"]


def test_slices_lie_in_one_domain_each(dc: Any) -> None:
    dc.node("x7", cpu=2, labels={BLOCK: "b1", RACK: "r3"})
    group(dc, "g", 4)
    members(dc, "g", 4, required_topology=BLOCK, slice_required_topology=HOST, slice_size="2")
    dc.settle()
    assert places(dc, "g", 4) == ["x4", "x4", "x7", "x7"]


def test_pods_without_a_wish_take_the_node_with_least_room_that_holds_them_all(dc: Any) -> None:
    group(dc, "g", 2)
    members(dc, "g", 2)
    dc.settle()
    assert places(dc, "g", 2) == ["x4", "x4"]


def test_room_is_made_in_one_domain(dc: Any) -> None:
    dc.put({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9})
    for node in ("x3", "x5", "x2"):
        group(dc, f"low-{node}", 1)
        members(dc, f"low-{node}", 1, spec={"nodeSelector": {HOST: node}}, required_topology=HOST)
    dc.settle()
    group(dc, "g", 3)
    members(dc, "g", 3, spec={"priority": 9}, required_topology=RACK)
    dc.settle()
    assert places(dc, "g", 3) == ["x1", "x5", "x6"]
    assert dc.evicted == ["low-x5-w-0"]
