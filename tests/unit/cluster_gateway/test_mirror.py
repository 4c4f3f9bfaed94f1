"""What is seen of an API server's objects, folded: newer wins, nothing is invented, nothing that is the same is told."""

from typing import Any

import pytest

from cluster_gateway.domain.mirror import Mirror
from kube import Edit, Key, Store

POD = Key("Pod", "default", "a")


def pod(version: int, *, uid: str = "u1", node: str = "", phase: str = "Pending", **metadata: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "i"}]}
    if node:
        spec["nodeName"] = node
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "a",
            "namespace": "default",
            "uid": uid,
            "resourceVersion": str(version),
            "managedFields": [{"manager": "kubectl"}],
            **metadata,
        },
        "spec": spec,
        "status": {"phase": phase},
    }


@pytest.fixture
def mirror() -> Mirror:
    made = Mirror(Store())
    made.begin(1_000, 1)
    return made


def turn(mirror: Mirror) -> list[Edit]:
    """The edits so far; the next change set begins."""
    edits = list(mirror.take())
    mirror.begin(1_000, mirror.cluster.revision + 1)
    return edits


def test_an_object_is_told_once_whoever_tells_of_it(mirror: Mirror) -> None:
    mirror.seen("Pod", pod(5), "job_controller")
    mirror.seen("Pod", pod(5))

    edits = turn(mirror)

    assert [(edit.key, edit.uid, edit.fresh, edit.actor) for edit in edits] == [(POD, "u1", True, "job_controller")]
    assert "managedFields" not in (edits[0].metadata or {})
    mirror.seen("Pod", pod(6))
    assert turn(mirror) == []


def test_a_status_alone_leaves_the_spec_as_it_was_decided_on(mirror: Mirror) -> None:
    mirror.seen("Pod", pod(5))
    turn(mirror)

    mirror.seen("Pod", pod(6, phase="Running"))

    (edit,) = turn(mirror)
    assert (edit.metadata, edit.body, edit.status) == (None, None, {"phase": "Running"})
    stored = mirror.store.objects[POD]
    assert stored.spec_revision < stored.revision


def test_what_is_older_than_what_is_known_changes_nothing(mirror: Mirror) -> None:
    mirror.seen("Pod", pod(9, phase="Running"))
    mirror.seen("Pod", pod(7))
    mirror.gone("Pod", pod(8))

    assert mirror.store.objects[POD].status == {"phase": "Running"}


def test_a_bound_pod_is_never_seen_unbound_again(mirror: Mirror) -> None:
    mirror.seen("Pod", pod(5))
    turn(mirror)

    mirror.bound(POD, "u1", "n1", {"devices": "0"}, "gang_scheduler")
    (edit,) = turn(mirror)
    assert edit.node == "n1"
    mirror.seen("Pod", pod(6, labels={"late": "yes"}))

    assert mirror.store.objects[POD].spec["nodeName"] == "n1"
    assert mirror.store.objects[POD].labels == {"late": "yes"}
    mirror.seen("Pod", pod(7, node="n1", labels={"late": "yes"}, annotations={"devices": "0"}))
    assert all(edit.body is None and not edit.node for edit in turn(mirror))


def test_of_a_pod_that_others_bound_only_the_node_and_the_status_are_told(mirror: Mirror) -> None:
    mirror.seen("Pod", pod(5))
    turn(mirror)

    mirror.seen("Pod", pod(6, node="n1", phase="Running"))

    (edit,) = turn(mirror)
    assert (edit.metadata, edit.body, edit.node, edit.status) == (None, None, "n1", {"phase": "Running"})
    assert mirror.store.objects[POD].spec["nodeName"] == "n1"


def test_a_binding_of_a_pod_that_was_replaced_is_not_laid_over_its_successor(mirror: Mirror) -> None:
    mirror.seen("Pod", pod(5, uid="u2"))
    mirror.bound(POD, "u1", "n1", {}, "gang_scheduler")

    assert "nodeName" not in mirror.store.objects[POD].spec


def test_another_object_of_the_same_name_is_a_new_one(mirror: Mirror) -> None:
    mirror.seen("Pod", pod(5))
    turn(mirror)

    mirror.seen("Pod", pod(8, uid="u2"))

    gone, new = turn(mirror)
    assert (gone.removed, gone.uid) == (True, "u1")
    assert (new.fresh, new.uid) == (True, "u2")


def test_a_list_takes_away_what_it_leaves_out_but_nothing_that_came_later(mirror: Mirror) -> None:
    other = pod(12, uid="u9")
    other["metadata"]["name"] = "b"
    mirror.seen("Pod", pod(5))
    mirror.seen("Pod", other)
    turn(mirror)

    mirror.listed("Pod", frozenset(), 10)

    assert [(edit.key.name, edit.removed) for edit in turn(mirror)] == [("a", True)]
    assert Key("Pod", "default", "b") in mirror.store.objects


def test_what_a_restart_finds_in_the_log_is_compared_with_the_list(mirror: Mirror) -> None:
    mirror.seen("Pod", pod(5))
    turn(mirror)
    successor = Mirror(mirror.store)
    successor.begin(2_000, 7)

    successor.seen("Pod", pod(6))
    successor.listed("Pod", frozenset({POD}), 6)

    assert list(successor.take()) == []


def test_what_is_gone_is_not_brought_back_by_an_answer_that_comes_late(mirror: Mirror) -> None:
    mirror.seen("Pod", pod(5))
    mirror.gone("Pod", pod(8))

    mirror.seen("Pod", pod(7), "gang_scheduler")

    assert POD not in mirror.store.objects
    mirror.seen("Pod", pod(9, uid="u2"))
    assert mirror.store.objects[POD].uid == "u2"


def test_objects_of_a_kind_that_was_not_ours_to_see_come_back(mirror: Mirror) -> None:
    mirror.seen("Pod", pod(5))
    mirror.without_kind("Pod")

    mirror.seen("Pod", pod(5))

    assert mirror.store.objects[POD].uid == "u1"


def test_a_cluster_that_was_put_back_has_its_pods_as_they_were_then(mirror: Mirror) -> None:
    mirror.seen("Pod", pod(5))
    mirror.bound(POD, "u1", "n1", {}, "gang_scheduler")
    turn(mirror)

    mirror.began_anew("Pod")
    mirror.seen("Pod", pod(4))
    mirror.listed("Pod", frozenset({POD}), 4)

    gone, new = turn(mirror)
    assert (gone.removed, new.fresh, new.node) == (True, True, "")
    assert "nodeName" not in mirror.store.objects[POD].spec


def test_room_that_somebody_else_took_on_a_node_is_noted_and_our_own_is_not(mirror: Mirror) -> None:
    mirror.binding("u1", "n1")
    mirror.seen("Pod", pod(5, node="n1"))
    assert "n1" not in mirror.cluster.node_revisions

    other = pod(6, uid="u2", node="n2")
    other["metadata"]["name"] = "b"
    mirror.seen("Pod", other)

    assert mirror.cluster.node_revisions == {"n2": 1}


def test_only_what_differs_in_more_than_its_status_is_unknown(mirror: Mirror) -> None:
    mirror.seen("Pod", pod(5))

    assert mirror.is_known("Pod", pod(6, phase="Running"))
    assert not mirror.is_known("Pod", pod(7, labels={"new": "yes"}))


def test_values_of_secrets_never_become_facts(mirror: Mirror) -> None:
    secret = {
        "metadata": {
            "name": "s",
            "namespace": "default",
            "uid": "u3",
            "resourceVersion": "3",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": '{"data": {"key": "c2VjcmV0"}}'},
        },
        "data": {"key": "c2VjcmV0"},
        "type": "Opaque",
    }
    mirror.seen("Secret", secret)

    (edit,) = turn(mirror)
    assert (edit.body or {})["data"] == {"key": ""}
    assert "c2VjcmV0" not in repr(edit)


def test_pods_of_one_template_share_their_body(mirror: Mirror) -> None:
    other = pod(6, uid="u2")
    other["metadata"]["name"] = "b"
    mirror.seen("Pod", pod(5))
    mirror.seen("Pod", other)

    first, second = turn(mirror)
    assert first.body is second.body


def test_who_made_a_change_is_known_though_the_watch_told_of_it_first(mirror: Mirror) -> None:
    mirror.seen("Pod", pod(5))
    mirror.seen("Pod", pod(6, labels={"a": "b"}))
    assert mirror.cluster.authors[POD] == "somebody"

    mirror.seen("Pod", pod(6, labels={"a": "b"}), "job_controller")

    assert mirror.cluster.authors[POD] == "job_controller"


def test_what_is_deleted_at_once_is_gone_whether_the_answer_or_the_watch_tells_first(mirror: Mirror) -> None:
    mirror.seen("Pod", pod(5))

    mirror.seen("Pod", pod(6), "user")
    mirror.gone("Pod", pod(6))

    assert POD not in mirror.store.objects
