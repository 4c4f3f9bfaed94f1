"""Those whom a cluster knows: what it is asked, how long its answers count, and what they may see."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from admission.applier import Unavailable
from admission.callers import EVERYTHING, Ask, Denied
from admission.cluster_callers import ACCESS_REVIEWS, GRANTED_SECONDS, REFUSED_SECONDS, TOKEN_REVIEWS, ClusterCallers
from apiserver import Answer, ApiRequest, Unreachable
from chassis.virtual_time import VirtualLoop
from cluster_gateway.kubernetes.writer import impersonation

ANN = {"username": "ann", "uid": "u1", "groups": ["team"], "extra": {"scopes.io/a b": ["x", "y"]}}


class Server:
    """An API server that knows the tokens of ``users`` and grants what is in ``granted`` as (verb, resource, name)."""

    def __init__(self) -> None:
        self.users: dict[str, Any] = {"t1": ANN}
        self.granted: set[tuple[str, str, str]] = set()
        self.asked: list[tuple[str, Any]] = []
        self.away = False

    async def send(self, request: ApiRequest) -> Answer:
        if self.away:
            raise Unreachable("nobody answers")
        spec = (request.body or {})["spec"]
        self.asked.append((request.path, spec))
        if request.path == TOKEN_REVIEWS:
            user = self.users.get(spec["token"])
            return Answer(201, {"status": {"authenticated": bool(user), "user": user}})
        assert request.path == ACCESS_REVIEWS
        wanted = spec["resourceAttributes"]
        key = (wanted["verb"], wanted["resource"], wanted.get("name", ""))
        return Answer(201, {"status": {"allowed": key in self.granted or (*key[:2], "") in self.granted}})


class Desk:
    def __init__(self) -> None:
        self.loop = VirtualLoop()
        asyncio.set_event_loop(self.loop)
        self.server = Server()
        self.callers = ClusterCallers(self.server)  # type: ignore[arg-type]

    def do(self, work: Any) -> Any:
        task = self.loop.create_task(work)
        self.loop.settle()
        return task.result()

    def wait(self, seconds: float) -> None:
        self.loop.advance(int(seconds * 1000))

    def check(self, *asks: Ask) -> None:
        self.do(self.do(self.callers.caller("t1")).check(*asks))


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    asyncio.set_event_loop(None)
    made.loop.close()


def test_who_it_is_is_what_the_cluster_says(desk: Desk) -> None:
    caller = desk.do(desk.callers.caller("t1"))

    assert (caller.name, caller.identity.uid, list(caller.identity.groups)) == ("ann", "u1", ["team"])
    assert impersonation(caller.identity) == (
        ("Impersonate-User", "ann"),
        ("Impersonate-Uid", "u1"),
        ("Impersonate-Group", "team"),
        ("Impersonate-Extra-scopes.io%2Fa%20b", "x"),
        ("Impersonate-Extra-scopes.io%2Fa%20b", "y"),
    )


def test_nobody_is_let_in_whom_the_cluster_does_not_know_or_who_has_the_name_of_a_part(desk: Desk) -> None:
    desk.server.users["t2"] = {"username": "gang_scheduler"}
    for token, why in (("t9", "does not know the token"), ("t2", "a part of the system")):
        with pytest.raises(Denied, match=why):
            desk.do(desk.callers.caller(token))


@pytest.mark.parametrize(
    ("ask", "attributes"),
    [
        (
            Ask("create", "Job.batch.volcano.sh", "team", "j"),
            {
                "verb": "create",
                "group": "batch.volcano.sh",
                "version": "v1alpha1",
                "resource": "jobs",
                "namespace": "team",
            },
        ),
        (Ask("list", "Node"), {"verb": "list", "group": "", "version": "v1", "resource": "nodes"}),
        (
            Ask("get", "Pod", "team", subresource="log"),
            {
                "verb": "get",
                "group": "",
                "version": "v1",
                "resource": "pods",
                "subresource": "log",
                "namespace": "team",
            },
        ),
        (Ask("watch", EVERYTHING), {"verb": "watch", "group": "*", "resource": "*"}),
    ],
)
def test_the_cluster_is_asked_in_its_own_terms(desk: Desk, ask: Ask, attributes: dict[str, str]) -> None:
    desk.server.granted.add((ask.verb, attributes["resource"], ""))

    desk.check(ask)

    spec = desk.server.asked[-1][1]
    assert spec["resourceAttributes"] == attributes
    assert (spec["user"], spec["groups"], spec["uid"]) == ("ann", ["team"], "u1")
    assert spec["extra"] == ANN["extra"]


def test_many_objects_of_a_kind_are_one_question_and_one_object_can_be_granted_alone(desk: Desk) -> None:
    desk.server.granted |= {("update", "pods", ""), ("update", "jobs", "mine")}

    desk.check(*(Ask("update", "Pod", "team", f"p{number}") for number in range(100)))
    assert len(desk.server.asked) == 2  # who it is, and what they may

    desk.check(Ask("update", "Job.batch", "team", "mine"))
    with pytest.raises(Denied, match="ann may not update jobs other in namespace team"):
        desk.check(Ask("update", "Job.batch", "team", "other"))


def test_a_right_that_is_taken_away_counts_for_a_short_time_at_most(desk: Desk) -> None:
    ask = Ask("delete", "Pod", "team")
    desk.server.granted.add(("delete", "pods", ""))
    desk.check(ask)
    desk.server.granted.clear()

    desk.wait(GRANTED_SECONDS - 1)
    desk.check(ask)
    desk.wait(2)
    with pytest.raises(Denied):
        desk.check(ask)

    desk.server.granted.add(("delete", "pods", ""))
    desk.wait(REFUSED_SECONDS + 1)
    desk.check(ask)


def test_a_token_that_is_revoked_counts_for_a_short_time_at_most(desk: Desk) -> None:
    desk.do(desk.callers.caller("t1"))
    desk.server.users.clear()
    desk.do(desk.callers.caller("t1"))

    desk.wait(GRANTED_SECONDS + 1)

    with pytest.raises(Denied):
        desk.do(desk.callers.caller("t1"))


def test_without_the_cluster_nobody_is_let_in_and_nobody_is_told_that_they_may_not(desk: Desk) -> None:
    desk.server.away = True

    with pytest.raises(Unavailable):
        desk.do(desk.callers.caller("t1"))


def test_the_whole_is_shown_to_who_may_list_everything(desk: Desk) -> None:
    caller = desk.do(desk.callers.caller("t1"))
    sight = desk.do(caller.overview())
    assert sight is not None and not sight(None)

    desk.wait(REFUSED_SECONDS + 1)
    desk.server.granted.add(("list", "*", ""))

    assert desk.do(caller.overview()) is None
