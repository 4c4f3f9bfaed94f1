"""Answers in lines, who is told of an eviction when the pod is gone, and snapshots made from admission's own fold."""

from typing import Any

import orjson
import pytest

from admission.answer_lines import answer_lines
from admission.answers import departed
from admission.history import History
from admission.questions import GROUP_KIND, Questions
from admission.snapshots import SnapshotDesk
from chassis import LoopClock
from chassis.snapshots import NotKept
from kube import Decision, Key, Object
from tidegate import subjects
from tidegate.codec.decisions import CommitHead, encode_commit
from tidegate.codec.snapshots import unpack
from tidegate.services import DECIDERS

POD = Object(Key("Pod", "default", "p"), "u", {}, {"spec": {}}, {})
GROUP = Object(Key(GROUP_KIND, "default", "g"), "u", {}, {"spec": {}}, {})


def test_a_wait_is_told_from_the_rule_to_the_way_out() -> None:
    answer = {
        "verdict": "Waiting",
        "rule": "NotEnoughResources",
        "message": "0/2 nodes are available: 2 Insufficient cpu.",
        "resources": [
            {"resource": "cpu", "need": "2", "mostOnOneNode": "1", "node": "a", "freeTogether": "2", "short": True},
            {"resource": "pods", "need": "1", "mostOnOneNode": "9", "node": "a", "freeTogether": "18", "short": False},
        ],
        "gang": {"placed": 1, "needed": 3, "roles": []},
        "nearestMiss": {"message": "1 more cpu on node a would do for pod p; free there: cpu 1"},
        "queues": [{"queue": "q", "used": {"cpu": "3"}, "capability": {"cpu": "4"}}],
        "usedBy": [{"group": "default/other", "used": {"cpu": "3"}}],
        "position": 2,
        "waitingInQueue": 5,
        "ahead": ["default/first"],
        "heldRoom": [{"for": ["default/x"], "nodes": ["a"], "until": "2026-01-01T00:00:00Z", "basis": "reservation"}],
        "estimate": "once other ended; nobody says when that is",
        "waysOut": ["wait"],
    }
    assert answer_lines(POD, "gang_scheduler", answer) == [
        "Pod/default/p: Waiting (NotEnoughResources)",
        "  0/2 nodes are available: 2 Insufficient cpu.",
        "  of the 3 members that start together 1 would find room now",
        "  cpu: a pod needs 2, the most on one node is 1 (a), free on all together 2",
        "  nearest miss: 1 more cpu on node a would do for pod p; free there: cpu 1",
        "  queue q: used cpu 3; capability cpu 4",
        "  default/other uses cpu 3 of it",
        "  position in the queue: 2 of 5, behind default/first",
        "  room is kept for default/x on a until 2026-01-01T00:00:00Z (reservation)",
        "  estimate: once other ended; nobody says when that is",
        "  way out: wait",
    ]


def test_a_service_that_is_away_is_named() -> None:
    assert answer_lines(POD, "gang_scheduler", {"error": "nobody answers on x"}) == [
        "Pod/default/p: gang_scheduler does not answer just now"
    ]


def test_whoever_keeps_the_gate_is_asked_about_those_who_wait_there(desk: Any) -> None:
    async def scheduler(payload: bytes) -> bytes:
        return orjson.dumps({"verdict": "NotLetIn", "rule": "QueueGate", "message": "not let in"})

    async def queues(payload: bytes) -> bytes:
        told = {"verdict": "NotLetIn", "rule": "QueueClosed", "message": "queue q is Closed", "waysOut": ["open it"]}
        return orjson.dumps({**told, "queues": [{"queue": "q", "state": "Closed"}]})

    desk.do(desk.bus.serve(subjects.question("gang_scheduler", "explain"), scheduler))
    desk.do(desk.bus.serve(subjects.question("queue_manager", "explain"), queues))
    lines, details = desk.do(Questions(desk.bus, desk.view.store).explain(GROUP))
    assert lines == [
        f"{GROUP.key}: NotLetIn (QueueClosed)",
        "  queue q is Closed",
        "  queue q is Closed",
        "  way out: open it",
    ]
    assert details[str(GROUP.key)]["rule"] == "QueueClosed"


def test_a_pod_that_is_gone_is_told_by_whom_it_was_evicted(desk: Any) -> None:
    history = History(desk.bus, ("gang_scheduler",))
    message = "1 pod is evicted for default/big to start on n: default/low-1 (priority 0, queue q, on n)"
    evicted = Decision("GangPreempted", Key(GROUP_KIND, "default", "big"), "u", "PreemptedByPriority", message)
    payload = encode_commit(CommitHead("gang_scheduler", 1, 0, 1_767_225_600_000), [("gang_scheduler/1/1", evicted)])
    log = desk.bus.log(subjects.decisions("gang_scheduler"))
    desk.do(log.append(payload, expected=0, message_id="1"))
    following = desk.begin(history.follow("gang_scheduler"))
    assert history.eviction_of(Key("Pod", "default", "low")) is None
    assert history.eviction_of(Key("Pod", "default", "big")) is None
    found = history.eviction_of(Key("Pod", "default", "low-1"))
    assert found is not None and found.id == "gang_scheduler/1/1"
    lines, details = departed(Key("Pod", "default", "low-1"), found)
    assert lines == [
        "Pod/default/low-1: Evicted (PreemptedByPriority) at 2026-01-01T00:00:00Z, and gone",
        f"  {message}",
    ]
    assert details["Pod/default/low-1"]["by"] == "default/big"
    following.cancel()


def test_a_snapshot_holds_what_is_there_and_what_the_services_were_told(desk: Any) -> None:
    async def settings(payload: bytes) -> bytes:
        return b'{"placement":"spread"}'

    desk.do(desk.bus.serve(subjects.question("gang_scheduler", "settings"), settings))
    desk.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}})
    snapshots = SnapshotDesk(desk.bus, desk.view, LoopClock(), "1.2")
    taken = unpack(desk.do(snapshots.take()))
    assert (taken.version, taken.taken_at_ms, taken.facts.revision) == ("1.2", desk.loop.now_ms, desk.view.revision)
    names = [change.name for part in taken.facts.parts for change in part.changes]
    assert "c" in names
    told = {log.service: log.settings for log in taken.logs}
    silent = dict.fromkeys(DECIDERS, b"")
    assert told == {**silent, "gang_scheduler": b'{"placement":"spread"}'}


@pytest.mark.parametrize("decision", ["toaster/1/1", "gang_scheduler/1/1"])
def test_a_decision_that_is_not_kept_cannot_be_looked_at(desk: Any, decision: str) -> None:
    with pytest.raises(NotKept, match="decision"):
        desk.do(SnapshotDesk(desk.bus, desk.view, LoopClock(), "").take(decision))
