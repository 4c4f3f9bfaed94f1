"""In a burst answers are gathered into few change sets; what comes alone is stored at once."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from apiserver.api import Answer, ApiRequest
from bus import MemoryBus
from chassis import LoopClock
from chassis.virtual_time import VirtualLoop
from cluster_gateway.kubernetes.gateway import GATHERING_SECONDS, KubernetesGateway
from cluster_gateway.settings import GatewaySettings
from kube import Decision, Key, Mutation, Verb
from tidegate import subjects
from tidegate.codec import facts
from tidegate.codec.decisions import CommitHead, encode_commit
from tidegate.fact.v1 import fact_pb2

PODS = 300
ANSWER_SECONDS = 0.004
_VERBS = ["list", "watch"]


def listed(kind: str, names: list[str]) -> list[dict[str, Any]]:
    space = {"namespace": "default"} if kind == "Pod" else {}
    return [
        {"metadata": {"name": name, **space, "uid": f"uid-{name}", "resourceVersion": "1"}, "spec": {}, "status": {}}
        for name in names
    ]


class Server:
    """Pods and a node; every request is answered after the same time, and no watch ever tells anything."""

    def __init__(self) -> None:
        self.objects = {
            "/api/v1/pods": listed("Pod", [f"p{number}" for number in range(PODS)]),
            "/api/v1/nodes": listed("Node", ["n"]),
        }

    async def __aenter__(self) -> "Server":
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def get(self, path: str, parameters: Any = None) -> Answer:
        return await self.send(ApiRequest("GET", path))

    async def send(self, request: ApiRequest) -> Answer:
        await asyncio.sleep(ANSWER_SECONDS)
        if request.path == "/api/v1":
            kinds = (("pods", "Pod", True), ("nodes", "Node", False))
            found = [
                {"name": name, "kind": kind, "namespaced": inside, "verbs": _VERBS} for name, kind, inside in kinds
            ]
            return Answer(200, {"resources": found})
        return Answer(200, {"metadata": {"resourceVersion": "1"}, "items": self.objects.get(request.path, [])})

    async def lines(self, path: str, parameters: Any, silence: float) -> AsyncIterator[list[bytes]]:
        await asyncio.Event().wait()
        yield []


@pytest.fixture
def rig() -> Iterator[SimpleNamespace]:
    loop = VirtualLoop()
    asyncio.set_event_loop(loop)
    rig = SimpleNamespace(loop=loop, bus=MemoryBus(), count=0)
    settings = GatewaySettings(services=("gang_scheduler",))
    gateway = KubernetesGateway(rig.bus, LoopClock(), settings, Server(), frozenset(("Pod", "Node")))
    task = loop.create_task(gateway.run())
    loop.advance(1_000)
    assert gateway.ready.is_set()
    yield rig
    task.cancel()
    loop.settle()
    loop.close()


def bind(rig: Any, *names: str) -> None:
    """Each pod is bound to the node by a decision of its own, all in one commit."""
    log, facts_log = rig.bus.log(subjects.decisions("gang_scheduler")), rig.bus.log(subjects.FACTS)
    head = CommitHead("gang_scheduler", 1, facts_log.entries(0)[-1].sequence, rig.loop.now_ms)
    decisions = []
    for name in names:
        mutation = Mutation(Verb.BIND, Key("Pod", "default", name), f"uid-{name}", node="n")
        decisions.append(
            (f"gang_scheduler/{name}", Decision("GangPlaced", mutation.key, mutation.uid, mutations=(mutation,)))
        )
    rig.count += 1
    payload = encode_commit(head, decisions)
    rig.loop.create_task(log.append(payload, expected=rig.count - 1, message_id=str(rig.count)))
    rig.loop.settle()


def sets(rig: Any) -> list[fact_pb2.ChangeSet]:
    """The change sets with outcomes."""
    found = [fact_pb2.ChangeSet.FromString(one.payload) for one in rig.bus.log(subjects.FACTS).entries(0)]
    return [one for one in found if list(facts.outcomes(one))]


def test_in_a_burst_there_is_a_change_set_in_each_span_of_gathering_and_no_answer_is_lost(rig: Any) -> None:
    began = rig.loop.time()
    names = [f"p{number}" for number in range(PODS)]
    bind(rig, *names)
    while sum(len(one.outcomes) for one in sets(rig)) < PODS:
        rig.loop.advance(1)
    took = rig.loop.time() - began
    assert len(sets(rig)) <= took / GATHERING_SECONDS + 2
    assert sorted(outcome.object for one in sets(rig) for outcome in one.outcomes) == sorted(names)
    assert all(outcome.applied for one in sets(rig) for outcome in one.outcomes)


def test_what_comes_alone_is_stored_as_soon_as_it_is_answered(rig: Any) -> None:
    for name in ("p0", "p1"):
        bind(rig, name)
        known = len(sets(rig))
        rig.loop.advance(round(ANSWER_SECONDS * 1_000))
        assert len(sets(rig)) == known + 1
