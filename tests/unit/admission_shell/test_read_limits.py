"""A user who may read only in some namespaces sees nothing of the others, by whatever call."""

from collections.abc import AsyncIterator
from typing import Any

import grpc
import orjson
import pytest

from admission.applier import Change
from admission.door import Door
from admission.happening import Happening
from admission.history import History
from admission.rpc import Servicer
from admission.users import User, Users
from admission.view import View
from kube import Key
from tidegate import subjects
from tidegate.api.v1 import api_pb2

ADA = User("ada", "ta", ("research",), ("shared",))
BOB = User("bob", "tb", ("research",))


class Aborted(Exception):
    """A call ended with a status."""


class Call:
    """The context of one call."""

    def __init__(self, token: str) -> None:
        self._token = token

    def invocation_metadata(self) -> list[tuple[str, str]]:
        return [("authorization", f"Bearer {self._token}")]

    async def abort(self, code: grpc.StatusCode, text: str) -> None:
        raise Aborted(code, text)


@pytest.fixture
def servicer(desk: Any) -> Servicer:
    history = History(desk.bus, ("gang_scheduler",))
    for namespace in ("research", "shared", "secret", ""):
        key = Key("ConfigMap" if namespace else "Node", namespace, "x")
        history._kept.append(Happening(1, "gang_scheduler", "Made", "R", namespace, key))
    made = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": namespace}}
        for namespace in ("research", "shared", "secret")
    ]
    desk.do(desk.applier.apply("root", [Change(one) for one in made]))
    desk.enact(lambda cluster: cluster.create(Key("NodeMetric.slo.koordinator.sh", "", "n"), {}, {}, {}))

    async def status(payload: bytes) -> bytes:
        aside = {"Pod/secret/p": "KeyError: secret", "Pod/research/p": "KeyError: mine"}
        return orjson.dumps({"trouble": "", "aside": aside})

    desk.do(desk.bus.serve(subjects.question("gang_scheduler", "status"), status))
    return Servicer(desk.bus, desk.view, desk.applier, Door(Users([ADA, BOB])), history)


def seen(desk: Any, work: Any) -> Any:
    return desk.do(work)


def where(manifests: Any) -> list[str]:
    metadata = [orjson.loads(one)["metadata"] for one in manifests]
    return [one.get("namespace") or one["name"] for one in metadata]


def refused(desk: Any, work: Any) -> grpc.StatusCode:
    with pytest.raises(Aborted) as ended:
        desk.do(work)
    assert "ada may not read" in ended.value.args[1]
    code: grpc.StatusCode = ended.value.args[0]
    return code


@pytest.mark.parametrize(
    ("token", "expected"), [("ta", ["research", "shared"]), ("tb", ["research", "secret", "shared"])]
)
def test_lists_and_watches_of_all_namespaces_have_what_may_be_read(
    desk: Any, servicer: Servicer, token: str, expected: list[str]
) -> None:
    page = desk.do(servicer.List(api_pb2.ListRequest(kind="configmaps"), Call(token)))
    assert where(page.manifests) == expected
    told: list[api_pb2.WatchResponse] = []

    async def watch() -> None:
        async for change in servicer.Watch(api_pb2.WatchRequest(kind="configmaps"), Call(token)):
            told.append(change)

    desk.begin(watch())
    change = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}
    desk.do(
        desk.applier.apply(
            "root", [Change({**change, "metadata": {"name": "x", "namespace": one}}) for one in ("secret", "shared")]
        )
    )
    first = [one.manifest for one in told if one.type == "added"]
    later = [one.manifest for one in told if one.type == "modified"]
    assert where(first) == expected and sorted(where(later)) == [one for one in ("secret", "shared") if one in expected]


def test_what_is_named_in_another_namespace_is_refused(desk: Any, servicer: Servicer) -> None:
    denied, call = grpc.StatusCode.PERMISSION_DENIED, Call("ta")
    name = api_pb2.ObjectName(kind="configmap", namespace="secret", name="x")
    unknown = api_pb2.ObjectName(kind="configmap", namespace="secret", name="not-there")
    assert refused(desk, servicer.Get(api_pb2.GetRequest(name=name), call)) == denied
    assert refused(desk, servicer.Get(api_pb2.GetRequest(name=unknown), call)) == denied, "nor is it told what is there"
    assert refused(desk, servicer.Explain(api_pb2.ExplainRequest(name=name), call)) == denied
    assert refused(desk, servicer.List(api_pb2.ListRequest(kind="pods", namespace="secret"), call)) == denied
    assert refused(desk, servicer.Events(api_pb2.EventsRequest(namespace="secret"), call)) == denied
    assert refused(desk, servicer.Events(api_pb2.EventsRequest(about=name), call)) == denied
    assert refused(desk, servicer.Events(api_pb2.EventsRequest(dead=True), call)) == denied
    for stream in (
        servicer.Watch(api_pb2.WatchRequest(kind="pods", namespace="secret"), call),
        servicer.Logs(api_pb2.LogsRequest(namespace="secret", pod="p"), call),
    ):
        assert refused(desk, drained(stream)) == denied


async def drained(stream: AsyncIterator[Any]) -> None:
    async for _ in stream:
        pass


def test_what_is_readable_is_answered(desk: Any, servicer: Servicer) -> None:
    for namespace in ("research", "shared"):
        name = api_pb2.ObjectName(kind="configmap", namespace=namespace, name="x")
        assert desk.do(servicer.Get(api_pb2.GetRequest(name=name), Call("ta"))).manifest


def test_events_and_counts_are_of_what_may_be_read(desk: Any, servicer: Servicer) -> None:
    found = desk.do(servicer.Events(api_pb2.EventsRequest(), Call("ta"))).events
    assert sorted(one.about.namespace for one in found) == ["", "research", "shared"]
    mine, all_ = (desk.do(servicer.Status(api_pb2.StatusRequest(), Call(token))) for token in ("ta", "tb"))
    assert (mine.objects["ConfigMap"], all_.objects["ConfigMap"]) == (2, 3)
    words = {one.name: one.message for one in desk.do(servicer.Status(api_pb2.StatusRequest(), Call("ta"))).services}
    assert "Pod/research/p: KeyError: mine" in words["gang_scheduler"] and "2 set aside" in words["gang_scheduler"]
    assert "secret" not in words["gang_scheduler"]


def test_of_what_has_no_namespace_only_what_tells_of_others_is_kept_back(desk: Any, servicer: Servicer) -> None:
    names = where(desk.do(servicer.List(api_pb2.ListRequest(kind="namespaces"), Call("ta"))).manifests)
    assert names == ["research", "shared"]
    assert not desk.do(servicer.List(api_pb2.ListRequest(kind="nodemetrics"), Call("ta"))).manifests
    assert desk.do(servicer.List(api_pb2.ListRequest(kind="nodemetrics"), Call("tb"))).manifests
    assert desk.do(servicer.List(api_pb2.ListRequest(kind="queues"), Call("ta"))).manifests


def test_who_one_is_says_what_may_be_read(desk: Any, servicer: Servicer) -> None:
    answers = [desk.do(servicer.WhoAmI(api_pb2.WhoAmIRequest(), Call(token))) for token in ("ta", "tb")]
    assert [list(one.reads) for one in answers] == [["shared", "research"], ["*"]]


def test_who_asks_a_server_that_has_just_started_is_answered_when_it_has_read_everything(
    desk: Any, servicer: Servicer
) -> None:
    """Until then it would say that there is nothing."""
    fresh = View(desk.bus)
    young = Servicer(desk.bus, fresh, desk.applier, Door(Users([BOB])), History(desk.bus, ()))
    name = api_pb2.ObjectName(kind="cm", namespace="research", name="x")
    asked = desk.begin(young.Get(api_pb2.GetRequest(name=name), Call("tb")))
    assert not asked.done()
    desk.tasks.append(desk.loop.create_task(fresh.run()))
    desk.loop.settle()
    assert where([asked.result().manifest]) == ["research"]
