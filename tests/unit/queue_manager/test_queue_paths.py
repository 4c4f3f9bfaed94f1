"""Queues that say by a path where they hang: Volcano's hierarchy annotations."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import Object, from_manifest
from queue_manager.domain.quotas.queue_path import read_path
from queue_manager.domain.quotas.queue_tree import QueueTree, read_queue


def queue(name: str, path: str = "", weights: str = "", **spec: Any) -> Object:
    annotations = {"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights} if path else {}
    return from_manifest(
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"parent": "root", **spec},
        }
    )


def tree_of(*items: Object) -> QueueTree:
    tree = QueueTree()
    for item in items:
        tree.put(read_queue(item))
    assert tree.check() == []
    return tree


def test_a_path_makes_the_queues_that_it_leads_through() -> None:
    tree = tree_of(queue("dev", "root/sci/dev", "1/3/2"), queue("prod", "root/sci/prod", "1/3/8"))
    assert tree.line_of("dev") == ["dev", "root/sci", "root"]
    assert tree.children_of("root/sci") == ["dev", "prod"]
    assert [tree.queues[name].weight for name in ("root/sci", "dev", "prod")] == [3, 2, 8]
    assert tree.is_leaf("dev") and not tree.is_leaf("root/sci")


def test_steps_are_there_as_long_as_a_path_leads_through_them() -> None:
    tree = tree_of(queue("dev", "root/sci/dev", "1/3/2"), queue("web", "root/eng/web", "1/1/1"))
    tree.remove("dev")
    tree.put(read_queue(queue("web", "root/ops/web", "1/4/1")))
    assert sorted(tree.queues) == ["default", "root", "root/ops", "web"]


def test_the_queue_that_is_first_by_name_gives_a_step_its_weight() -> None:
    items = [queue("b", "root/s/b", "1/5/1"), queue("a", "root/s/a", "1/2/1")]
    for order in (items, items[::-1]):
        assert tree_of(*order).queues["root/s"].weight == 2


@pytest.mark.parametrize(
    ("path", "weights", "spec"),
    [
        ("root/a/q", "1/2", {}),
        ("root/a/q", "1/x/1", {}),
        ("root/a/q", "1/0/1", {}),
        ("root", "1", {}),
        ("a/q", "1/1", {}),
        ("root/a/q", "1/1/1", {"parent": "dept"}),
        ("root/a/q", "1/inf/1", {}),
    ],
)
def test_a_path_that_says_nothing_sound_is_none(path: str, weights: str, spec: dict[str, str]) -> None:
    """Admission refuses most of them; what is stored nevertheless does no harm."""
    assert read_path(queue("q", path, weights, **spec)) is None


def test_shares_go_down_the_path_by_weight(cluster: Any) -> None:
    cluster.node("n", cpu=24)
    for name, path, weights in (
        ("dev", "root/sci/dev", "1/3/1"),
        ("prod", "root/sci/prod", "1/3/2"),
        ("web", "root/eng/web", "1/1/1"),
    ):
        cluster.put(queue(name, path, weights).manifest())
        cluster.pod(f"p-{name}", {"cpu": 24}, queue=name)
    cluster.settle()
    entitled = cluster.entitled
    deserved = {name: entry["deserved"].get("cpu") for name, entry in entitled.items()}
    assert {name: deserved[name] for name in ("dev", "prod", "web", "root/sci")} == {
        "dev": 6000,
        "prod": 12000,
        "web": 6000,
        "root/sci": 18000,
    }
    assert entitled["dev"]["parent"] == "root/sci"


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["root/x", "root/x/y", "root/z", ""])), max_size=12))
def test_the_tree_is_that_of_the_queues_that_there_are(changes: list[tuple[str, str]]) -> None:
    tree, last = QueueTree(), dict[str, str]()
    for name, above in changes:
        last[name] = above
        path = f"{above}/{name}" if above else ""
        tree.put(read_queue(queue(name, path, "/".join("1" * len(path.split("/"))))))
    steps = {
        "/".join(above.split("/")[: end + 1])
        for above in last.values()
        if above
        for end in range(1, above.count("/") + 1)
    }
    assert set(tree.queues) == {"root", "default", *last, *steps}
    assert tree.check() == []
    for name, above in last.items():
        assert tree.parent_of(name) == (above or "root")
