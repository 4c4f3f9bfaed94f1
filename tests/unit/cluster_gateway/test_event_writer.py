"""Events of Kubernetes: one for an object and reason, counted up; they give way to what is decided."""

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from apiserver.api import Answer, ApiRequest
from chassis.virtual_time import VirtualLoop
from cluster_gateway.kubernetes import event_writer
from cluster_gateway.kubernetes.event_writer import EventWriter
from kube import Decision, Key, Outcome

NOW = 1_767_225_600_000


class Server:
    """Keeps the Events that are written; one that is there already is a conflict, as on an API server."""

    def __init__(self) -> None:
        self.events: dict[str, Any] = {}

    async def send(self, request: ApiRequest) -> Answer:
        body = dict(request.body or {})
        name = body["metadata"]["name"] if request.method == "POST" else request.path.rpartition("/")[2]
        if request.method == "POST" and name in self.events:
            return Answer(409, {})
        self.events[name] = {**self.events.get(name, {}), **body}
        return Answer(200, {})


@pytest.fixture
def desk() -> Iterator[SimpleNamespace]:
    loop, server, desk = VirtualLoop(), Server(), SimpleNamespace(busy=False, gone=())
    asyncio.set_event_loop(loop)
    desk.loop, desk.server = loop, server
    desk.writer = EventWriter(server, "here", lambda: desk.busy, lambda key: key.name not in desk.gone)
    task = loop.create_task(desk.writer.run())
    loop.settle()
    yield desk
    task.cancel()
    loop.settle()
    loop.close()


def tell(desk: Any, decision: Decision) -> None:
    desk.writer.tell("gang_scheduler", decision, Outcome("d", decision.name, decision.subject, True), NOW)


def placed(name: str, message: str = "2 pods placed", **more: Any) -> Decision:
    return Decision(
        "GangPlaced", Key("PodGroup.scheduling.volcano.sh", "team", name), "u", "Scheduled", message, **more
    )


def test_what_is_decided_again_of_one_object_for_one_reason_is_counted_up_in_one_event(desk: Any) -> None:
    for message in ("1 pod placed", "1 pod placed", "2 pods placed"):
        tell(desk, placed("g", message))
        desk.loop.settle()
    (event,) = desk.server.events.values()
    assert (event["message"], event["count"], event["type"]) == ("2 pods placed", 2, "Normal")
    assert event["metadata"]["namespace"] == event["involvedObject"]["namespace"] == "team"
    assert event["source"] == {"component": "tidegate-gang-scheduler", "host": "here"}


def test_while_decisions_are_carried_out_events_trickle_and_then_all_are_written(desk: Any) -> None:
    desk.busy = True
    for number in range(50):
        tell(desk, placed(f"g{number}"))
    desk.loop.advance(1_000)
    assert len(desk.server.events) == pytest.approx(10, abs=1)
    desk.busy = False
    desk.loop.advance(round(event_writer.GIVING_WAY_SECONDS * 1e3))
    assert len(desk.server.events) == 50


def test_when_too_many_wait_the_oldest_is_dropped(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_writer, "MOST_WAITING", 2)
    for name in ("a", "b", "c"):
        tell(desk, placed(name))
    desk.loop.settle()
    assert sorted(one["involvedObject"]["name"] for one in desk.server.events.values()) == ["b", "c"]


def test_of_what_is_gone_by_then_only_warnings_are_told(desk: Any) -> None:
    desk.gone = ("g",)
    tell(desk, placed("g"))
    tell(desk, Decision("GangPreempted", Key("Pod", "team", "g"), "u", "Preempted", "by h"))
    desk.loop.settle()
    assert [one["reason"] for one in desk.server.events.values()] == ["Preempted"]


def test_statuses_brought_up_to_date_are_not_worth_an_event(desk: Any) -> None:
    tell(desk, Decision("QueueReported", Key("Pod", "a", "b"), "u", "r", "m"))
    desk.loop.settle()
    assert not desk.server.events
