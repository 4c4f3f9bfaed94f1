"""Writing for users: what came together goes together, and nobody suffers for the others."""

from typing import Any

import pytest

from admission.applier import PATIENCE_SECONDS, Change, NotStored, Unavailable
from kube import Key, Manifest
from tidegate import subjects
from tidegate.gateway.v1 import gateway_pb2


def config(name: str = "", **parts: Any) -> Manifest:
    metadata = {**({"name": name} if name else {}), **parts.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": parts}


def queue(name: str, parent: str) -> Manifest:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, "parent": parent},
    }


WRONG = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}}


def outcomes(results: Any) -> list[str]:
    return [result.outcome for result in results]


def objects(request: gateway_pb2.WriteRequest) -> int:
    """How many objects a request writes; those that are alike go together."""
    return sum(len(write.names) or 1 for write in request.writes)


def test_what_is_new_is_created_and_the_reader_knows_it_at_once(desk: Any) -> None:
    (result,) = desk.apply(config("a", x="1"))
    found = desk.get("ConfigMap", "a")
    assert (result.outcome, result.uid) == ("created", found.uid)
    assert found.body == {"data": {"x": "1"}}


def test_a_secret_with_the_same_values_is_unchanged_though_nobody_here_sees_them(desk: Any) -> None:
    def secret(value: str, **labels: str) -> Manifest:
        metadata = {"name": "s", **({"labels": labels} if labels else {})}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"a": value, "b": "2"}}

    desk.apply(secret("1"))
    before = desk.get("Secret", "s")
    assert outcomes(desk.apply(secret("1"), config("c"))) == ["unchanged", "created"]
    assert desk.get("Secret", "s").revision == before.revision
    assert outcomes(desk.apply(secret("3"))) == ["configured"]
    assert outcomes(desk.apply(secret("3", team="x"))) == ["configured"]
    assert outcomes(desk.apply(secret("3", team="x"))) == ["unchanged"]


def test_an_immutable_secret_may_be_applied_again_and_keeps_its_values(desk: Any) -> None:
    def secret(value: str, **labels: str) -> Manifest:
        metadata = {"name": "s", "labels": {"of": "us", **labels}}
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata,
            "stringData": {"a": value},
            "immutable": True,
        }

    desk.apply(secret("1"))
    assert outcomes(desk.apply(secret("1"))) == ["unchanged"]
    assert outcomes(desk.apply(secret("1", team="x"))) == ["configured"]
    refused, made = desk.apply(secret("2", team="y"), config("c"))
    assert (refused.outcome, made.outcome) == ("refused", "created")
    assert "the secret is immutable" in refused.message and refused.errors[0].path == "data"
    assert desk.get("Secret", "s").labels["team"] == "x"
    assert outcomes(desk.apply(secret("1", team="x"))) == ["unchanged"]


def test_what_is_there_is_configured_and_what_is_the_same_is_left(desk: Any) -> None:
    desk.apply(config("a", x="1"))
    assert outcomes(desk.apply(config("a", x="2"))) == ["configured"]
    revision, asked = desk.view.revision, len(desk.bus.asked)
    (same,) = desk.apply(config("a", x="2"))
    assert same.outcome == "unchanged" and same.uid == desk.get("ConfigMap", "a").uid
    assert (desk.view.revision, len(desk.bus.asked)) == (revision, asked)


def test_requests_that_come_together_go_in_one_write(desk: Any) -> None:
    tasks = [desk.ask(Change(config(f"c{n}"))) for n in range(20)]
    desk.loop.settle()
    assert [objects(request) for request in desk.bus.asked] == [20]
    assert {revision for _, revision in (task.result() for task in tasks)} == {desk.view.revision}


def test_requests_of_different_users_are_never_mixed(desk: Any) -> None:
    tasks = [desk.ask(Change(config(f"c{n}")), actor=actor) for n, actor in enumerate(("ann", "ann", "bob", "ann"))]
    desk.loop.settle()
    assert [(request.actor, objects(request)) for request in desk.bus.asked] == [("ann", 2), ("bob", 1), ("ann", 1)]
    assert all(outcomes(task.result()[0]) == ["created"] for task in tasks)


def test_while_one_write_is_on_its_way_the_next_gathers(desk: Any) -> None:
    async def meanwhile() -> None:
        for n in range(5):
            desk.ask(Change(config(f"later{n}")))

    desk.bus.before = meanwhile
    desk.apply(config("first"))
    assert [objects(request) for request in desk.bus.asked] == [1, 5]


def test_a_refused_object_does_not_disturb_the_others(desk: Any) -> None:
    good, mixed, bad = (
        desk.ask(Change(config("a"))),
        desk.ask(Change(WRONG), Change(config("b"))),
        desk.ask(Change({"apiVersion": "v1", "kind": "Nothing"})),
    )
    desk.loop.settle()
    assert outcomes(good.result()[0]) == ["created"]
    assert outcomes(mixed.result()[0]) == ["refused", "created"]
    assert outcomes(bad.result()[0]) == ["refused"]
    assert mixed.result()[0][0].errors and "spec.containers" in mixed.result()[0][0].message
    assert desk.get("Pod", "p") is None and desk.get("ConfigMap", "b") is not None


@pytest.mark.parametrize(
    "broken",
    [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": "text"},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": ["a"]},
        {"apiVersion": ["v1"], "kind": {"a": 1}, "metadata": {"name": "x"}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "labels": [1]}, "spec": {"containers": "no"}},
        ["no", "mapping"],
        "text",
    ],
)
def test_an_object_that_nobody_can_make_sense_of_does_not_disturb_the_others(desk: Any, broken: Any) -> None:
    tasks = [desk.ask(Change(config("a"))), desk.ask(Change(broken)), desk.ask(Change(config("b")))]
    desk.loop.settle()
    assert [outcomes(task.result()[0]) for task in tasks] == [["created"], ["refused"], ["created"]]
    assert tasks[1].result()[0][0].message


def test_later_parts_of_a_request_see_the_earlier_ones(desk: Any) -> None:
    assert outcomes(desk.apply(queue("up", "root"), queue("down", "up"))) == ["created", "created"]
    again, _ = desk.do(
        desk.applier.apply(
            "ann",
            [Change(config("a", x="1")), Change(config("a", x="2")), Change(delete=Key("ConfigMap", "default", "a"))],
        )
    )
    assert outcomes(again) == ["created", "configured", "deleted"]
    assert desk.get("ConfigMap", "a") is None


def test_what_changed_between_check_and_write_is_checked_again(desk: Any) -> None:
    """The writer saw an old version: it waits until it has read the new one, and decides again on that."""
    desk.apply(config("a", x="1"))
    key = Key("ConfigMap", "default", "a")

    async def meanwhile() -> None:
        await desk.gateway.enact(
            lambda cluster: cluster.replace(
                cluster.store.objects[key], {"labels": {"by": "other"}}, cluster.store.objects[key].body
            )
        )

    desk.bus.before = meanwhile
    (result,) = desk.apply(config("a", x="2"))
    assert result.outcome == "configured" and len(desk.bus.asked) == 3
    found = desk.get("ConfigMap", "a")
    assert (found.body, found.labels) == ({"data": {"x": "2"}}, {"by": "other"})


@pytest.mark.parametrize(("create_only", "outcome"), [(False, "configured"), (True, "refused")])
def test_what_came_to_be_between_check_and_write(desk: Any, create_only: bool, outcome: str) -> None:
    async def meanwhile() -> None:
        await desk.gateway.enact(
            lambda cluster: cluster.create(Key("ConfigMap", "default", "a"), {}, {"data": {"x": "theirs"}}, {})
        )

    desk.bus.before = meanwhile
    results = desk.apply(config("a", x="mine"), config("b"), create_only=create_only)
    assert outcomes(results) == [outcome, "created"]
    assert desk.get("ConfigMap", "a").body["data"] == {"x": "theirs" if create_only else "mine"}


def test_what_was_deleted_between_check_and_write_is_created_anew(desk: Any) -> None:
    desk.apply(config("a", x="1"))
    old = desk.get("ConfigMap", "a").uid

    async def meanwhile() -> None:
        await desk.gateway.enact(
            lambda cluster: cluster.delete(cluster.store.objects[Key("ConfigMap", "default", "a")])
        )

    desk.bus.before = meanwhile
    (result,) = desk.apply(config("a", x="2"))
    assert result.outcome == "created" and result.uid not in ("", old)


def test_what_must_be_new_is_refused_where_it_is_not(desk: Any) -> None:
    desk.apply(config("a", x="1"))
    (result,) = desk.apply(config("a", x="2"), create_only=True)
    assert result.outcome == "refused"
    assert [(error.path, error.value, error.rule) for error in result.errors] == [
        ("metadata.name", "a", "exists already")
    ]


def test_a_generated_name_is_a_new_one_each_time(desk: Any) -> None:
    results = desk.apply(*(config(metadata={"generateName": "run-"}) for _ in range(5)))
    names = {result.key.name for result in results}
    assert len(names) == 5 and all(name.startswith("run-") and len(name) == 9 for name in names)
    assert {key.name for key in desk.view.store.of_kind("ConfigMap")} == names


def test_a_dry_run_says_what_would_be_and_does_nothing(desk: Any) -> None:
    desk.apply(config("a", x="1"))
    revision, asked = desk.view.revision, len(desk.bus.asked)

    async def try_it() -> Any:
        changes = [Change(config("a", x="2")), Change(config("b")), Change(WRONG), Change(config("a", x="1"))]
        return desk.applier.dry_run([*changes, Change(delete=Key("ConfigMap", "default", "a"))])

    results = desk.do(try_it())
    assert outcomes(results) == ["configured", "created", "refused", "configured", "deleted"]
    assert (desk.view.revision, len(desk.bus.asked)) == (revision, asked)
    assert desk.get("ConfigMap", "a").body == {"data": {"x": "1"}} and desk.get("ConfigMap", "b") is None


def test_deleting_says_what_is_not_there(desk: Any) -> None:
    desk.apply(config("a"))
    keys = [Key("ConfigMap", "default", name) for name in ("a", "none")]
    results = desk.delete(*keys)
    assert outcomes(results) == ["deleted", "refused"]
    assert results[1].message == "ConfigMap/default/none not found"


def test_labels_that_are_left_out_stay_unless_the_whole_is_to_be_replaced(desk: Any) -> None:
    desk.apply(config("a", metadata={"labels": {"x": "1"}}))
    assert outcomes(desk.apply(config("a"))) == ["unchanged"]
    assert desk.get("ConfigMap", "a").labels == {"x": "1"}
    assert outcomes(desk.apply(config("a"), replace=True)) == ["configured"]
    assert desk.get("ConfigMap", "a").labels == {}
    assert outcomes(desk.apply(config("a"), replace=True)) == ["unchanged"]


def test_a_gateway_that_is_away_for_a_moment_is_waited_for(desk: Any) -> None:
    desk.kill_gateway()
    task = desk.ask(Change(config("a")))
    desk.loop.advance(3_000)
    assert not task.done()
    desk.start_gateway()
    desk.loop.advance(2_000)
    assert outcomes(task.result()[0]) == ["created"]


def test_a_gateway_that_died_with_the_answer_has_done_it_once(desk: Any) -> None:
    """The name was generated: done twice there would be two objects."""
    answer = desk.gateway._batch.__class__.answer
    try:
        desk.gateway._batch.__class__.answer = lambda batch, revision: desk.gateway_task.cancel()
        task = desk.ask(Change(config(metadata={"generateName": "run-"})))
        desk.loop.settle()
    finally:
        desk.gateway._batch.__class__.answer = answer
    assert not task.done()
    desk.start_gateway()
    desk.loop.advance(2_000)
    assert outcomes(task.result()[0]) == ["created"]
    assert len(desk.view.store.of_kind("ConfigMap")) == 1 and len({r.id for r in desk.bus.asked}) == 1


def test_who_waits_for_a_gateway_that_does_not_come_back_is_told_so(desk: Any) -> None:
    desk.kill_gateway()
    task = desk.ask(Change(config("a")))
    desk.loop.advance(int(PATIENCE_SECONDS * 1000) + 10_000)
    assert isinstance(task.exception(), Unavailable)
    desk.start_gateway()
    assert outcomes(desk.apply(config("a"))) == ["created"]


def test_what_the_gateway_cannot_store_fails_alone(desk: Any) -> None:
    store = desk.gateway.local.cluster.create_all

    def picky(keys: list[Key], *parts: Any) -> Any:
        if any(key.name == "cursed" for key in keys):
            raise ValueError("no room for this one")
        return store(keys, *parts)

    desk.gateway.local.cluster = _Picky(desk.gateway.local.cluster, picky)
    tasks = [desk.ask(Change(config(name))) for name in ("a", "cursed", "b")]
    desk.loop.settle()
    assert [task.exception() is None for task in tasks] == [True, False, True]
    assert isinstance(tasks[1].exception(), NotStored) and "no room for this one" in str(tasks[1].exception())
    assert {key.name for key in desk.view.store.of_kind("ConfigMap")} == {"a", "b"}


class _Picky:
    """A cluster of which one method is another."""

    def __init__(self, cluster: Any, create_all: Any) -> None:
        object.__setattr__(self, "_cluster", cluster)
        object.__setattr__(self, "create_all", create_all)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._cluster, name, value)


def test_a_deletion_that_is_sent_again_does_not_touch_a_new_object_of_that_name(desk: Any) -> None:
    """The answer was lost, the gateway forgot the request, and somebody made the object anew."""
    desk.apply(config("a", x="old"))
    (deleted,) = desk.delete(Key("ConfigMap", "default", "a"))
    desk.apply(config("a", x="new"))
    request = next(asked for asked in desk.bus.asked if any(write.delete for write in asked.writes))
    desk.kill_gateway()
    desk.start_gateway()
    desk.gateway.local._done.clear()
    reply = gateway_pb2.WriteReply.FromString(desk.do(desk.bus.request(subjects.WRITE, request.SerializeToString())))
    assert deleted.outcome == "deleted" and not reply.error
    assert desk.get("ConfigMap", "a").body == {"data": {"x": "new"}}


def test_a_deletion_that_is_tried_again_means_the_object_that_was_there(desk: Any) -> None:
    """It came with a write that was late; while that was tried again its object was made anew."""
    desk.apply(config("a", x="old"), config("b", x="1"))
    key, other = (Key("ConfigMap", "default", name) for name in "ab")

    def anew(cluster: Any) -> None:
        cluster.replace(cluster.store.objects[other], {"labels": {"by": "other"}}, cluster.store.objects[other].body)
        cluster.delete(cluster.store.objects[key])
        cluster.create(key, {}, {"data": {"x": "new"}}, {})

    async def meanwhile() -> None:
        await desk.gateway.enact(anew)

    desk.bus.before = meanwhile
    results, _ = desk.do(desk.applier.apply("ann", [Change(config("b", x="2")), Change(delete=key)]))
    assert [result.outcome for result in results] == ["configured", "deleted"]
    assert desk.get("ConfigMap", "a").body == {"data": {"x": "new"}}
