"""Queues: defaults, numbers, the tree, and who may go into which."""

from typing import Any

import pytest


def queue(name: str, parent: str = "", **spec: Any) -> dict[str, Any]:
    api = "scheduling.volcano.sh/v1beta1"
    return {
        "apiVersion": api,
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {**({"parent": parent} if parent else {}), **spec},
    }


def job(queue_name: str | None = None, namespace: str = "default") -> dict[str, Any]:
    task = {"name": "w", "template": {"spec": {"containers": [{"name": "c", "image": "busybox"}]}}}
    spec = {"tasks": [task], **({"queue": queue_name} if queue_name else {})}
    metadata = {"name": "j", "namespace": namespace}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}


def test_a_new_queue_is_open_below_the_root_with_weight_one(gate: Any) -> None:
    stored = gate.apply(queue("q", weight=0))
    assert stored["spec"] == {"weight": 1, "reclaimable": True, "dequeueStrategy": "traverse", "parent": "root"}
    assert stored["status"] == {"state": "Open"}


def test_the_root_itself_has_no_parent(gate: Any) -> None:
    assert "parent" not in gate.apply(queue("root"))["spec"]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"weight": -1}, "spec.weight"),
        ({"weight": 65536}, "spec.weight"),
        ({"priority": -1}, "spec.priority"),
        ({"dequeueStrategy": "lifo"}, "spec.dequeueStrategy"),
        ({"capability": {"cpu": "lots"}}, "spec.capability.cpu"),
        ({"deserved": {"cpu": -1}}, "spec.deserved.cpu"),
        ({"deserved": {"cpu": 2}, "capability": {"cpu": "1500m"}}, "spec.deserved.cpu"),
        ({"guarantee": {"resource": {"cpu": 2}}, "deserved": {"cpu": 1}}, "spec.guarantee.resource.cpu"),
        ({"guarantee": {"resource": {"cpu": 2}}, "capability": {"cpu": 1}}, "spec.guarantee.resource.cpu"),
        ({"parent": "q"}, "spec.parent"),
        ({"parent": "nowhere"}, "spec.parent"),
        ({"weight": "1"}, "spec.weight"),
        ({"capability": [1]}, "spec.capability"),
    ],
)
def test_a_queue_with_impossible_numbers_is_refused_by_field(gate: Any, spec: dict[str, Any], path: str) -> None:
    assert list(gate.wrong(queue("q", **spec))) == [path]


def test_everything_that_is_wrong_is_told_at_once(gate: Any) -> None:
    wrong = gate.wrong(queue("q", weight=-1, deserved={"cpu": -1}, dequeueStrategy="lifo"))
    assert set(wrong) == {"spec.weight", "spec.deserved.cpu", "spec.dequeueStrategy"}


def test_a_capability_is_held_against_the_nearest_ancestor_that_has_one(gate: Any) -> None:
    """Resource by resource: the parent limits cpu, the grandparent memory."""
    gate.apply(queue("top", capability={"cpu": 8, "memory": "8Gi"}))
    gate.apply(queue("middle", "top", capability={"cpu": 4}))
    wrong = gate.wrong(queue("leaf", "middle", capability={"cpu": 6, "memory": "9Gi"}))
    assert set(wrong) == {"spec.capability.cpu", "spec.capability.memory"}
    assert "middle" in wrong["spec.capability.cpu"]
    assert "top" in wrong["spec.capability.memory"]


def test_a_parent_cannot_shrink_below_its_children(gate: Any) -> None:
    gate.apply(queue("dept", capability={"cpu": 8}, deserved={"cpu": 6}))
    gate.apply(queue("team", "dept", capability={"cpu": 8}, deserved={"cpu": 5}))
    wrong = gate.wrong(queue("dept", capability={"cpu": 7}, deserved={"cpu": 4}))
    assert set(wrong) == {"spec.capability.cpu", "spec.deserved.cpu"}


def test_a_grandparent_cannot_shrink_below_who_is_limited_by_it_alone(gate: Any) -> None:
    gate.apply(queue("top", capability={"cpu": 8, "memory": "8Gi"}))
    gate.apply(queue("middle", "top", capability={"memory": "4Gi"}))
    gate.apply(queue("leaf", "middle", capability={"cpu": 7, "memory": "4Gi"}))
    assert list(gate.wrong(queue("top", capability={"cpu": 6, "memory": "8Gi"}))) == ["spec.capability.cpu"]
    assert not gate.wrong(queue("top", capability={"cpu": 7, "memory": "4Gi"}))


def test_an_update_of_a_child_does_not_count_it_twice(gate: Any) -> None:
    gate.apply(queue("dept", deserved={"cpu": 6}))
    gate.apply(queue("team", "dept", deserved={"cpu": 4}))
    assert not gate.wrong(queue("team", "dept", deserved={"cpu": 6}))


def test_children_of_the_root_may_deserve_what_they_like(gate: Any) -> None:
    gate.apply(queue("a", deserved={"cpu": 1000}))
    assert not gate.wrong(queue("b", deserved={"cpu": 1000}))


def test_a_queue_cannot_move_under_its_own_child(gate: Any) -> None:
    gate.apply(queue("dept"))
    gate.apply(queue("team", "dept"))
    assert "below dept" in gate.wrong(queue("dept", "team"))["spec.parent"]


def test_the_tree_is_at_most_five_queues_deep(gate: Any) -> None:
    parent = ""
    for name in "abcde":
        gate.apply(queue(name, parent))
        parent = name
    assert "would be 6" in gate.wrong(queue("f", "e"))["spec.parent"]


def test_a_queue_with_running_pods_cannot_become_a_parent(gate: Any) -> None:
    gate.apply(queue("busy"), allocated={"cpu": "3"})
    gate.apply(queue("idle"), allocated={"cpu": "0"})
    assert not gate.wrong(queue("team", "idle"))
    assert "running pods" in gate.wrong(queue("team", "busy"))["spec.parent"]


def test_the_amounts_of_the_root_stay(gate: Any) -> None:
    gate.apply(queue("root", capability={"cpu": 8}))
    assert list(gate.wrong(queue("root", capability={"cpu": 9}))) == ["spec.capability.cpu"]


@pytest.mark.parametrize(("name", "why"), [("root", "always exists"), ("default", "always exists"), ("dept", "team")])
def test_queues_that_are_needed_cannot_be_deleted(gate: Any, name: str, why: str) -> None:
    for made in (queue("root"), queue("default"), queue("dept"), queue("team", "dept")):
        gate.apply(made)
    assert why in gate.keeps(f"Queue/{name}")
    assert gate.keeps("Queue/team") == ""


def test_hierarchy_annotations_start_at_the_root_and_have_a_weight_for_each_step(gate: Any) -> None:
    annotated = queue("q")
    annotated["metadata"]["annotations"] = {"volcano.sh/hierarchy": "sci/dev", "volcano.sh/hierarchy-weights": "2/8"}
    stored = gate.apply(annotated)
    assert stored["metadata"]["annotations"] == {
        "volcano.sh/hierarchy": "root/sci/dev",
        "volcano.sh/hierarchy-weights": "1/2/8",
    }
    inside = queue("r")
    inside["metadata"]["annotations"] = {"volcano.sh/hierarchy": "root/sci", "volcano.sh/hierarchy-weights": "1/none"}
    assert len(gate.wrong(inside)) == 2


def test_a_path_beside_a_parent_is_told_to_have_no_effect(gate: Any) -> None:
    gate.apply(queue("dept"))
    below = queue("team", "dept")
    below["metadata"]["annotations"] = {"volcano.sh/hierarchy": "root/team", "volcano.sh/hierarchy-weights": "1/1"}
    gate.apply(below)
    assert "no effect: the queue hangs from its spec.parent, dept" in str(gate.warnings)


@pytest.mark.parametrize(
    ("name", "why"),
    [("nowhere", "does not exist"), ("root", "root queue"), ("dept", "leaf"), ("shut", "Closing")],
)
def test_a_job_is_refused_by_a_queue_that_cannot_take_it(gate: Any, name: str, why: str) -> None:
    gate.apply(queue("dept"))
    gate.apply(queue("team", "dept"))
    gate.apply(queue("shut"), state="Closing")
    assert why in gate.wrong(job(name))["spec.queue"]


def test_a_job_that_names_no_queue_goes_to_default_though_nobody_made_it(gate: Any) -> None:
    assert gate.apply(job())["spec"]["queue"] == "default"


def test_a_job_that_names_no_queue_goes_to_the_one_of_its_namespace_and_stays(gate: Any) -> None:
    """The namespace may choose another queue later; the job that is there keeps its own."""
    lab = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab", "annotations": {}}}
    for name in ("one", "two"):
        gate.apply(queue(name))
    for name in ("one", "two"):
        lab["metadata"]["annotations"] = {"scheduling.volcano.sh/queue-name": name}  # type: ignore[index]
        gate.apply(lab)
        assert gate.apply(job(namespace="lab"))["spec"]["queue"] == "one"


def test_a_group_that_says_default_goes_where_its_namespace_says(gate: Any) -> None:
    gate.apply(queue("one"))
    named = {"name": "lab", "annotations": {"scheduling.volcano.sh/queue-name": "one"}}
    gate.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": named})
    group = """
    apiVersion: scheduling.volcano.sh/v1beta1
    kind: PodGroup
    metadata: {name: g, namespace: lab}
    spec: {minMember: 2, queue: default}
    """
    assert gate.apply(group)["spec"]["queue"] == "one"
