"""What the whole system says of itself, and what keeps a pod from running on its node."""

from typing import Any

import orjson

from admission.answers import MyStatus
from admission.applier import Change
from admission.questions import Questions
from admission.users import User
from kube import Key, Object


def states(desk: Any) -> dict[str, tuple[bool, str]]:
    answer = desk.do(MyStatus(desk.bus, desk.view, ("gang_scheduler",), "1", User("ann", "t")).answer())
    return {one.name: (one.ready, one.message) for one in answer.services}


def test_the_writer_of_facts_is_a_service_like_any_other(desk: Any) -> None:
    assert states(desk)["cluster_gateway"] == (True, "")
    desk.kill_gateway()
    ready, message = states(desk)["cluster_gateway"]
    assert not ready and message.startswith("nothing can change: ")


def test_a_node_whose_agent_is_silent_is_named(desk: Any) -> None:
    assert "node_agent" not in states(desk)
    for name, ready in (("a", "True"), ("b", "Unknown")):
        condition = {"type": "Ready", "status": ready, "message": "not heard for 40 s"}
        status = {"allocatable": {"cpu": "1"}, "conditions": [condition]}
        desk.enact(lambda cluster, name=name, status=status: cluster.create(Key("Node", "", name), {}, {}, status))
    assert states(desk)["node_agent"] == (False, "b: not heard for 40 s")


def test_a_manifest_that_is_none_is_refused_alone(desk: Any) -> None:
    """What is wrong with one object is said of it, and keeps nothing else out."""
    good = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "good"}}
    results, _ = desk.do(desk.applier.apply("ann", [Change({**good, "metadata": 5}), Change(good)]))
    assert [result.outcome for result in results] == ["refused", "created"]
    assert [error.path for error in results[0].errors] == ["metadata"]


def test_a_pod_on_its_node_says_what_it_waits_for(desk: Any) -> None:
    async def placed(payload: bytes) -> bytes:
        return orjson.dumps({"verdict": "Placed", "message": "pod p is on n"})

    desk.do(desk.bus.serve("tidegate.request.gang_scheduler.explain", placed))
    waiting = {"reason": "CreateContainerConfigError", "message": "ConfigMap default/c does not exist"}
    status = {
        "phase": "Pending",
        "containerStatuses": [
            {"name": "m", "state": {"waiting": waiting}},
            {"name": "o", "state": {"terminated": {"exitCode": 3}}},
        ],
    }
    pod = Object(Key("Pod", "default", "p"), "u", {}, {"spec": {"nodeName": "n"}}, status)
    lines, _ = desk.do(Questions(desk.bus, desk.view.store).explain(pod))
    assert lines == [
        "Pod/default/p: Placed",
        "  pod p is on n",
        "  container m waits (CreateContainerConfigError): ConfigMap default/c does not exist",
        "  container o ended with exit code 3",
    ]
