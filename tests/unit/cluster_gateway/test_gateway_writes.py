"""What users write and delete, and what goes with it."""

import asyncio
from typing import Any

import pytest

from bus import RequestFailed
from kube import Decision, Key, Manifest, Mutation, Verb
from tidegate import subjects
from tidegate.gateway.v1 import gateway_pb2


def thing(kind: str, name: str, namespace: str = "default", api: str = "v1", **parts: Any) -> Manifest:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **parts.pop("metadata", {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **parts}


def config(name: str, owners: list[Any] | None = None, finalizers: list[str] | None = None, **data: str) -> Manifest:
    metadata: Manifest = {}
    if owners:
        metadata["ownerReferences"] = [
            {"apiVersion": "v1", "kind": owner.kind, "name": owner.name, "uid": owner.uid} for owner in owners
        ]
    if finalizers:
        metadata["finalizers"] = finalizers
    return thing("ConfigMap", name, metadata=metadata, data=data)


def pod(name: str, namespace: str = "default", metadata: Manifest | None = None, **spec: Any) -> Manifest:
    return thing("Pod", name, namespace, metadata=metadata or {}, spec={"containers": [{"name": "main"}], **spec})


def key(name: str, kind: str = "ConfigMap", namespace: str = "default") -> Key:
    return Key(kind, namespace, name)


# --- conflicts -------------------------------------------------------------------------------------------------------


def test_a_write_is_stored_if_the_object_is_as_the_writer_saw_it(rig: Any) -> None:
    first = rig.write(config("a", x="1"))
    assert first.revision == rig.revision and not first.error
    changed = rig.write(config("a", x="2"), expected=first.revision)
    assert not changed.error
    assert rig.get("ConfigMap", "a").metadata["generation"] == 2
    late = rig.write(config("a", x="3"), expected=first.revision)
    assert (late.revision, late.conflict_revision) == (0, changed.revision)
    assert late.error == "ConfigMap/default/a was changed meanwhile"
    assert rig.get("ConfigMap", "a").body == {"data": {"x": "2"}}


def test_what_must_be_new_is_refused_where_there_is_one_already(rig: Any) -> None:
    first = rig.write(config("a"))
    again = rig.write(config("a"))
    assert (again.error, again.conflict_revision) == ("ConfigMap/default/a exists already", first.revision)


def test_what_was_deleted_meanwhile_is_a_conflict(rig: Any) -> None:
    seen = rig.write(config("a")).revision
    rig.delete(key("a"))
    reply = rig.write(config("a"), expected=seen)
    assert reply.error == "ConfigMap/default/a was deleted meanwhile"
    assert 0 < reply.conflict_revision <= rig.revision


def test_force_stores_whatever_is_there(rig: Any) -> None:
    rig.write(config("a", x="1"))
    assert not rig.write(config("a", x="2"), force=True).error
    assert rig.get("ConfigMap", "a").body == {"data": {"x": "2"}}


def test_of_a_request_with_one_conflict_nothing_is_stored(rig: Any) -> None:
    rig.write(config("a"))
    before = rig.revision
    assert rig.write(config("b"), config("a"), config("c")).error
    assert rig.revision == before and rig.names("ConfigMap") == ["a"]


def test_a_change_of_the_status_is_no_conflict(rig: Any) -> None:
    seen = rig.write(pod("p")).revision
    rig.enact(lambda cluster: cluster.set_status(cluster.store.objects[key("p", "Pod")], {"message": "waits"}))
    assert not rig.write(pod("p", priority=1), expected=seen).error
    assert rig.pod("p").status["message"] == "waits"


def test_the_same_request_again_is_done_once(rig: Any) -> None:
    request = rig.storing(config("a"), id="same")
    first, second = rig.ask(request), rig.ask(request)
    assert not first.error and not second.error and rig.revision == first.revision == second.revision


def test_a_request_that_was_done_is_known_to_a_successor(rig: Any) -> None:
    request = rig.storing(config("a"), id="same")
    rig.ask(request)
    rig.do(rig.gateway.snapshot())
    rig.restart()
    assert not rig.ask(request).error
    rig.delete(key("a"))
    rig.restart()
    assert not rig.ask(request).error and rig.names("ConfigMap") == []


def test_who_asks_a_gateway_that_dies_is_told_at_once(rig: Any) -> None:
    """Those whose change set is on its way as well as those that have not been looked at yet."""
    rig.bus.log(subjects.FACTS).append = _never
    asking = [
        rig.loop.create_task(rig.bus.request(subjects.WRITE, rig.storing(config(name)).SerializeToString()))
        for name in "ab"
    ]
    rig.loop.settle()
    asking.append(rig.loop.create_task(rig.bus.request(subjects.WRITE, rig.storing(config("c")).SerializeToString())))
    rig.loop.settle()
    assert not any(task.done() for task in asking)
    rig.kill()
    assert all(isinstance(task.exception(), RequestFailed) for task in asking)


async def _never(*_: Any, **__: Any) -> int:
    await asyncio.Event().wait()
    return 0


@pytest.mark.parametrize(
    "request_",
    [
        gateway_pb2.WriteRequest(
            id="x", writes=[gateway_pb2.Write(kind="ConfigMap", namespace="default", name="b", body=7)]
        ),
        gateway_pb2.WriteRequest(
            id="x",
            blobs=[b"{no json"],
            writes=[gateway_pb2.Write(kind="ConfigMap", namespace="default", name="b", body=1)],
        ),
        gateway_pb2.WriteRequest(
            id="x",
            blobs=[b"{}", b"[]"],
            writes=[
                gateway_pb2.Write(kind="ConfigMap", namespace="default", name="b", body=1),
                gateway_pb2.Write(kind="ConfigMap", namespace="default", name="c", metadata=2),
            ],
        ),
    ],
)
def test_a_request_that_cannot_be_done_is_refused_and_the_gateway_lives(rig: Any, request_: Any) -> None:
    reply = rig.ask(request_)
    assert reply.error.startswith("cannot be stored") and reply.conflict_revision == 0
    assert rig.names("ConfigMap") == []
    assert not rig.write(config("a")).error


def test_a_request_that_is_no_message_fails_for_the_asker_alone(rig: Any) -> None:
    with pytest.raises(RequestFailed):
        rig.do(rig.bus.request(subjects.WRITE, b"\xff\xff"))
    assert not rig.write(config("a")).error


def test_what_came_together_is_one_change_set(rig: Any) -> None:
    before = rig.revision
    asking = [
        rig.loop.create_task(rig.bus.request(subjects.WRITE, rig.storing(config(f"c{n}")).SerializeToString()))
        for n in range(50)
    ]
    rig.loop.settle()
    revisions = {gateway_pb2.WriteReply.FromString(task.result()).revision for task in asking}
    assert revisions == {before + 1} and len(rig.names("ConfigMap")) == 50


def test_a_large_heap_of_work_is_written_in_several_sets(make_rig: Any) -> None:
    rig = make_rig(most_edits=10)
    before = rig.revision
    for n in range(35):
        request = rig.storing(config(f"c{n}")).SerializeToString()
        rig.loop.create_task(rig.bus.request(subjects.WRITE, request))
    rig.loop.settle()
    assert len(rig.names("ConfigMap")) == 35 and rig.revision == before + 4


def test_a_user_cannot_write_what_the_cluster_keeps(rig: Any) -> None:
    seen = rig.write(config("a")).revision
    created = rig.get("ConfigMap", "a").metadata
    fake = {"creationTimestamp": "2000-01-01T00:00:00Z", "generation": 99, "deletionTimestamp": "2000-01-01T00:00:00Z"}
    rig.write(thing("ConfigMap", "a", metadata={**fake, "labels": {"x": "y"}}, data={}), expected=seen)
    changed = rig.get("ConfigMap", "a").metadata
    assert changed["creationTimestamp"] == created["creationTimestamp"] and "deletionTimestamp" not in changed
    assert changed["generation"] <= 2 and changed["labels"] == {"x": "y"}


def test_a_users_version_of_a_bound_pod_keeps_the_node(rig: Any) -> None:
    rig.node("n1")
    seen = rig.write(pod("p", nodeName="n1")).revision
    rig.write(pod("p", priority=2), expected=seen)
    assert rig.pod("p").spec["nodeName"] == "n1" and rig.pod("p").spec["priority"] == 2


# --- owners and finalizers ---------------------------------------------------------------------------------------------


def test_what_an_object_owns_goes_with_it_to_any_depth(rig: Any) -> None:
    rig.write(config("a"))
    for owner, name in (("a", "b"), ("b", "c"), ("a", "d")):
        rig.write(config(name, owners=[rig.get("ConfigMap", owner)]))
    rig.write(config("other"))
    before = rig.revision
    rig.delete(key("a"))
    assert rig.names("ConfigMap") == ["other"] and rig.revision == before + 1


def test_an_object_with_several_owners_goes_with_the_last_of_them(rig: Any) -> None:
    rig.write(config("a"), config("b"))
    rig.write(config("child", owners=[rig.get("ConfigMap", "a"), rig.get("ConfigMap", "b")]))
    rig.delete(key("a"))
    assert rig.names("ConfigMap") == ["b", "child"]
    rig.delete(key("b"))
    assert rig.names("ConfigMap") == []


def test_owners_that_go_together_take_what_they_share(rig: Any) -> None:
    rig.write(config("root"))
    rig.write(*(config(name, owners=[rig.get("ConfigMap", "root")]) for name in ("a", "b")))
    rig.write(config("child", owners=[rig.get("ConfigMap", "a"), rig.get("ConfigMap", "b")]))
    rig.delete(key("root"))
    assert rig.names("ConfigMap") == []


def test_an_owner_of_the_same_name_but_another_uid_keeps_nothing(rig: Any) -> None:
    rig.write(config("a"), config("b"))
    old = rig.get("ConfigMap", "b")
    rig.write(config("child", owners=[rig.get("ConfigMap", "a"), old]))
    rig.delete(key("b"))
    rig.write(config("b"))
    rig.delete(key("a"))
    assert rig.names("ConfigMap") == ["b"]


def test_owners_in_a_circle_go_together(rig: Any) -> None:
    rig.write(config("a"))
    rig.write(config("b", owners=[rig.get("ConfigMap", "a")]))
    rig.write(config("a", owners=[rig.get("ConfigMap", "b")]), force=True)
    rig.delete(key("a"))
    assert rig.names("ConfigMap") == []


def test_an_object_with_a_finalizer_stays_until_it_is_taken_off(rig: Any) -> None:
    rig.write(config("a", finalizers=["example.com/x"]))
    rig.write(config("child", owners=[rig.get("ConfigMap", "a")]))
    rig.delete(key("a"))
    assert rig.get("ConfigMap", "a").deleting and rig.names("ConfigMap") == ["a", "child"]
    rig.write(config("a", x="changed", finalizers=["example.com/x"]), force=True)
    assert rig.get("ConfigMap", "a").deleting
    rig.write(config("a", x="changed"), force=True)
    assert rig.names("ConfigMap") == []


def test_an_owned_object_with_a_finalizer_is_only_marked(rig: Any) -> None:
    rig.write(config("a"))
    rig.write(config("child", owners=[rig.get("ConfigMap", "a")], finalizers=["example.com/x"]))
    rig.delete(key("a"))
    assert rig.get("ConfigMap", "child").deleting


def test_deleting_what_is_not_there_is_done_already(rig: Any) -> None:
    before = rig.revision
    assert not rig.delete(key("nothing")).error
    assert rig.revision == before


# --- pods ---------------------------------------------------------------------------------------------------------------


def test_a_pod_without_a_node_goes_at_once(rig: Any) -> None:
    rig.write(pod("p"))
    rig.delete(key("p", "Pod"))
    assert rig.names("Pod") == []


@pytest.mark.parametrize(("grace", "seconds"), [(None, 30), (5, 5), (0, 0)])
def test_a_bound_pod_goes_when_its_node_says_so(rig: Any, grace: int | None, seconds: int) -> None:
    rig.node("n1")
    rig.write(pod("p", nodeName="n1"))
    rig.delete(key("p", "Pod"), grace)
    marked = rig.pod("p")
    assert marked.deleting and marked.metadata["deletionGracePeriodSeconds"] == seconds
    rig.report("n1", gone=[marked.uid])
    assert rig.names("Pod") == []


def test_a_grace_period_that_makes_no_sense_is_the_usual_one(rig: Any) -> None:
    rig.node("n1")
    rig.write(pod("p", nodeName="n1", terminationGracePeriodSeconds="soon"))
    assert not rig.delete(key("p", "Pod")).error
    assert rig.pod("p").metadata["deletionGracePeriodSeconds"] == 30


def test_a_pod_that_ended_or_whose_node_is_gone_goes_at_once(rig: Any) -> None:
    rig.node("n1")
    rig.write(pod("ended", nodeName="n1"), pod("stranded", nodeName="nowhere"))
    rig.report("n1", pods=[(rig.pod("ended"), {"phase": "Succeeded"})])
    rig.delete(key("ended", "Pod"))
    rig.delete(key("stranded", "Pod"))
    assert rig.names("Pod") == []


def test_a_pod_with_a_finalizer_goes_when_it_is_taken_off(rig: Any) -> None:
    held: Manifest = {"finalizers": ["example.com/x"]}
    rig.write(pod("p", metadata=held))
    rig.delete(key("p", "Pod"))
    assert rig.pod("p").deleting
    rig.write(pod("p"), force=True)
    assert rig.names("Pod") == []


def test_a_pod_that_ended_on_its_node_is_kept_by_its_finalizer_and_counts_as_failed(rig: Any) -> None:
    rig.node("n1")
    rig.write(pod("p", metadata={"finalizers": ["example.com/x"]}, nodeName="n1"))
    rig.delete(key("p", "Pod"))
    rig.report("n1", gone=[rig.pod("p").uid])
    assert rig.pod("p").status["phase"] == "Failed"
    rig.write(pod("p", nodeName="n1"), force=True)
    assert rig.names("Pod") == []


# --- namespaces ---------------------------------------------------------------------------------------------------------


def test_a_namespace_comes_with_the_first_object_in_it(rig: Any) -> None:
    rig.write(thing("ConfigMap", "a", "team", data={}))
    assert rig.get("Namespace", "team", "").status == {"phase": "Active"}


def test_a_namespace_goes_with_all_in_it_once_that_has_ended(rig: Any) -> None:
    rig.node("n1")
    rig.write(pod("running", "team", nodeName="n1"), thing("ConfigMap", "a", "team", data={}), config("other"))
    rig.delete(Key("Namespace", "", "team"))
    assert rig.get("Namespace", "team", "").deleting
    running = rig.pod("running", "team")
    assert running.deleting and rig.names("ConfigMap") == ["other"]
    made = Mutation(Verb.CREATE, key("new", "Pod", "team"), manifest=pod("new", "team"))
    (refused,) = rig.decide("job_controller", Decision("X", key("new", "Pod", "team"), mutations=(made,)))
    assert refused.reasons == {"Pod/team/new": "its namespace is being deleted"}
    rig.report("n1", gone=[running.uid])
    assert rig.get("Namespace", "team", "") is None


def test_an_empty_namespace_goes_at_once(rig: Any) -> None:
    rig.write(thing("Namespace", "team", ""))
    rig.delete(Key("Namespace", "", "team"))
    assert rig.get("Namespace", "team", "") is None


def test_a_new_cluster_has_its_namespaces_queues_and_priorities_once(rig: Any) -> None:
    assert rig.names("Namespace") == ["default", "kube-system"]
    assert rig.names("Queue.scheduling.volcano.sh") == ["default", "root"]
    before = rig.revision
    rig.restart()
    assert rig.revision == before
