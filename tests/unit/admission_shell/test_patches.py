"""Patches: done to the object as it is when it is written, so that nothing is lost that others change meanwhile."""

from typing import Any

import grpc
import orjson
import pytest
from tests.unit.admission_shell.test_read_limits import Aborted, Call

from admission.applier import Change, Result
from admission.door import Door
from admission.history import History
from admission.rpc import Servicer
from admission.users import User, Users
from kube import Key, Manifest
from tidegate.api.v1 import api_pb2

KEY = Key("ConfigMap", "default", "c")


@pytest.fixture
def stored(desk: Any) -> Any:
    metadata = {"name": "c", "labels": {"team": "a", "tier": "b"}}
    desk.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"x": "1", "y": "2"}})
    return desk


def patch(desk: Any, edit: Any, key: Key = KEY) -> Result:
    results: list[Result] = desk.do(desk.applier.apply("ann", [Change(patch=key, edit=edit)]))[0]
    return results[0]


def found(desk: Any) -> Any:
    return desk.get("ConfigMap", "c")


def test_a_merge_patch_changes_and_removes_what_it_names(stored: Any) -> None:
    result = patch(stored, {"data": {"x": "9", "y": None}, "metadata": {"labels": {"team": None}}})
    assert (result.outcome, found(stored).body, found(stored).labels) == (
        "configured",
        {"data": {"x": "9"}},
        {"tier": "b"},
    )
    assert patch(stored, {"data": {"x": "9"}}).outcome == "unchanged"


def test_a_json_patch_does_its_operations_or_none(stored: Any) -> None:
    assert patch(stored, [{"op": "replace", "path": "/data/x", "value": "5"}]).outcome == "configured"
    wrong = patch(stored, [{"op": "remove", "path": "/data/x"}, {"op": "test", "path": "/data/y", "value": "no"}])
    assert wrong.outcome == "refused" and "operation 2" in wrong.message
    assert found(stored).body == {"data": {"x": "5", "y": "2"}}


def test_what_others_change_meanwhile_is_kept(stored: Any) -> None:
    async def meanwhile() -> None:
        await stored.gateway.enact(
            lambda cluster: cluster.replace(cluster.store.objects[KEY], {}, {"data": {"x": "7", "z": "3"}})
        )

    stored.bus.before = meanwhile
    assert patch(stored, {"data": {"y": "9"}}).outcome == "configured"
    assert found(stored).body == {"data": {"x": "7", "z": "3", "y": "9"}}


def test_a_patch_for_a_version_is_not_done_to_another(stored: Any) -> None:
    version = str(found(stored).revision)
    assert patch(stored, {"metadata": {"resourceVersion": version}, "data": {"x": "2"}}).outcome == "configured"
    late = patch(stored, {"metadata": {"resourceVersion": version}, "data": {"x": "3"}})
    assert late.outcome == "refused" and f"which is {found(stored).revision}" in late.message
    assert found(stored).body["data"]["x"] == "2"


def test_what_an_object_is_cannot_be_patched(stored: Any) -> None:
    patch(stored, {"kind": "Secret", "metadata": {"name": "d", "namespace": "other"}, "data": {"x": "0"}})
    assert found(stored).body["data"]["x"] == "0"
    assert patch(stored, {"data": {}}, Key("ConfigMap", "default", "none")).message.endswith("none not found")


def test_a_patch_is_checked_as_a_write_is(stored: Any) -> None:
    assert patch(stored, {"data": {"x": 5}}).outcome == "refused"


def test_users_patch_where_they_may_write(stored: Any) -> None:
    ann, bob = User("ann", "ta", ("default",)), User("bob", "tb", ("other",))
    servicer = Servicer(stored.bus, stored.view, stored.applier, Door(Users([ann, bob])), History(stored.bus, ()))

    def ask(edit: Any, token: str = "ta", **more: bool) -> Any:
        name = api_pb2.ObjectName(kind="configmap", namespace="default", name="c")
        content = edit if isinstance(edit, bytes) else orjson.dumps(edit)
        return stored.do(servicer.Patch(api_pb2.PatchRequest(name=name, patch=content, **more), Call(token)))

    tried = ask({"data": {"x": "4"}}, dry_run=True)
    assert (tried.result.outcome, found(stored).body["data"]["x"]) == ("configured", "1")
    done = ask({"data": {"x": "4"}})
    assert (done.result.outcome, done.revision) == ("configured", found(stored).revision)
    for edit, token, code in (
        ({"data": {}}, "tb", grpc.StatusCode.PERMISSION_DENIED),
        (b"[", "ta", grpc.StatusCode.INVALID_ARGUMENT),
        (b"5", "ta", grpc.StatusCode.INVALID_ARGUMENT),
    ):
        with pytest.raises(Aborted) as ended:
            ask(edit, token)
        assert ended.value.args[0] == code


def test_a_replacing_apply_takes_labels_away(stored: Any) -> None:
    servicer = Servicer(
        stored.bus, stored.view, stored.applier, Door(Users([User("ann", "ta", ("default",))])), History(stored.bus, ())
    )
    manifest: Manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "labels": {"tier": "x"}}}
    request = api_pb2.ApplyRequest(manifests=[orjson.dumps(manifest)])
    stored.do(servicer.Apply(request, Call("ta")))
    assert found(stored).labels == {"team": "a", "tier": "x"}
    request.replace = True
    stored.do(servicer.Apply(request, Call("ta")))
    assert found(stored).labels == {"tier": "x"}
