"""An API server is told of the webhooks, again whenever something of it has changed, and not without need."""

import base64
import copy
from collections.abc import Iterator
from typing import Any

import pytest

from admission.domain.pod_review import SchedulerRule
from admission.webhooks.certificate_keeper import CertificateKeeper, OwnSecret, Serving
from admission.webhooks.registrar import LOOK_SECONDS, Registrar
from admission.webhooks.registration import MUTATING, VALIDATING, Asked, Place
from apiserver import Answer, ApiRequest, Unreachable

PLACE = Place("tidegate-system", "tidegate-admission")
RULE = SchedulerRule("tidegate", {"matchLabels": {"a": "b"}}, {})


class Server:
    """An API server that keeps what it is sent, under its path, and fills in what is not said."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}
        self.written: list[str] = []
        self.away = False

    async def get(self, path: str) -> Answer:
        return await self.send(ApiRequest("GET", path))

    async def send(self, request: ApiRequest) -> Answer:
        if self.away:
            raise Unreachable("nobody answers")
        body = copy.deepcopy(request.body) or {}
        path = request.path
        if request.method == "POST":
            path = f"{path}/{body['metadata']['name']}"
        elif path not in self.kept:
            return Answer(404, {"message": "not found"})
        if request.method == "GET":
            return Answer(200, copy.deepcopy(self.kept[path]))
        self.written.append(f"{request.method} {path.rpartition('/')[0].rpartition('/')[2]}")
        body["metadata"]["resourceVersion"] = str(len(self.written))
        for webhook in body.get("webhooks") or ():
            webhook["filled"] = "in"
        self.kept[path] = {**self.kept.get(path, {}), **body}
        return Answer(200, self.kept[path])

    def told(self, plural: str = MUTATING) -> Any:
        return self.kept[f"/apis/admissionregistration.k8s.io/v1/{plural}/tidegate-admission"]


class Mounted:
    look_seconds = 5.0

    def __init__(self) -> None:
        self.serving = Serving(b"chain", b"key", b"ca")

    async def current(self) -> Serving:
        return self.serving


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def source() -> Mounted:
    return Mounted()


@pytest.fixture
def start(desk: Any, server: Server, source: Mounted) -> Iterator[Any]:
    tasks: list[Any] = []

    def begin(**asked: Any) -> Registrar:
        keeper = CertificateKeeper(source)
        registrar = Registrar(server, desk.view, keeper, Asked(PLACE, **asked))  # type: ignore[arg-type]
        tasks.extend(desk.loop.create_task(work) for work in (keeper.run(), registrar.run()))
        desk.loop.settle()
        return registrar

    yield begin
    for task in tasks:
        task.cancel()
    desk.loop.settle()


def test_it_is_told_once_and_looked_after(desk: Any, server: Server, start: Any) -> None:
    assert start(scheduler=RULE).ready.is_set()
    first = list(server.written)
    desk.loop.advance(int(2 * LOOK_SECONDS * 1000))

    assert first == server.written == [f"POST {MUTATING}", f"POST {VALIDATING}"]

    server.told()["webhooks"][0]["failurePolicy"] = "Ignore"
    server.told()["metadata"]["annotations"] = {"meta.helm.sh/release-name": "tidegate"}
    desk.loop.advance(int(LOOK_SECONDS * 1000))

    assert server.told()["webhooks"][0]["failurePolicy"] == "Fail"
    assert server.told()["metadata"]["annotations"] == {"meta.helm.sh/release-name": "tidegate"}


def test_a_profile_that_comes_and_goes_changes_what_is_asked_about(desk: Any, server: Server, start: Any) -> None:
    start()
    profile = {
        "apiVersion": "config.koordinator.sh/v1alpha1",
        "kind": "ClusterColocationProfile",
        "metadata": {"name": "offline"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}},
    }

    desk.apply(profile)
    desk.loop.settle()
    assert [one["name"] for one in server.told()["webhooks"]][1:2] == ["profiles.pods.tidegate.dev"]


def test_a_new_certificate_of_another_authority_is_told_at_once(
    desk: Any, server: Server, source: Mounted, start: Any
) -> None:
    start()
    source.serving = Serving(b"chain2", b"key2", b"ca2")
    desk.loop.advance(5_001)

    for plural in (MUTATING, VALIDATING):
        for webhook in server.told(plural)["webhooks"]:
            assert base64.b64decode(webhook["clientConfig"]["caBundle"]) == b"ca2"


def test_whom_cert_manager_has_filled_in_is_kept(desk: Any, server: Server, start: Any) -> None:
    start(injected_from="tidegate-system/tls")
    server.told()["webhooks"][0]["clientConfig"]["caBundle"] = "injected"
    server.told()["webhooks"][0]["failurePolicy"] = "Ignore"
    desk.loop.advance(int(LOOK_SECONDS * 1000) + 1)

    assert server.told()["webhooks"][0]["failurePolicy"] == "Fail"
    assert server.told()["webhooks"][0]["clientConfig"]["caBundle"] == "injected"


def test_an_api_server_that_is_away_is_told_when_it_is_back(desk: Any, server: Server, start: Any) -> None:
    server.away = True
    registrar = start()
    desk.loop.advance(10_000)
    assert not registrar.ready.is_set()

    server.away = False
    desk.loop.advance(3_000)

    assert registrar.ready.is_set()


def test_replicas_share_their_certificate_until_it_has_to_be_renewed(desk: Any, server: Server) -> None:
    """One that is for other names is renewed by the same authority: those who trust it need not be told."""
    first, second, other = (
        desk.do(OwnSecret(server, "tidegate-system", [name]).current())  # type: ignore[arg-type]
        for name in ("a.svc", "a.svc", "b.svc")
    )

    assert first == second
    assert other.chain != first.chain
    assert other.authority == first.authority
