"""Who waits at the gate is told why, where in the line, and how its queues stand."""

from typing import Any


def explain(cluster: Any, name: str) -> Any:
    return cluster.core.query("explain", {"kind": "PodGroup", "namespace": "default", "name": name})


def test_a_closed_queue_is_the_reason_and_opening_it_the_way_out(cluster: Any) -> None:
    cluster.queue("q", capability={"cpu": "4"})
    cluster.settle()
    command = {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"name": "c", "namespace": "default"},
        "action": "CloseQueue",
        "target": {"kind": "Queue", "name": "q"},
    }
    cluster.put(command)
    cluster.settle()
    cluster.group("first", queue="q")
    cluster.group("second", queue="q")
    cluster.settle()
    answer = explain(cluster, "second")
    assert (answer["verdict"], answer["rule"]) == ("NotLetIn", "QueueClosed")
    assert (answer["position"], answer["waitingAtGate"], answer["ahead"]) == (2, 2, ["default/first"])
    assert answer["waysOut"] == ["open queue q (its administrator can), or move the work to an open one"]
    assert [(item["queue"], item["state"]) for item in answer["queues"]] == [("q", "Closed"), ("root", "Open")]
    assert answer["queues"][0]["capability"] == {"cpu": "4"}


def test_who_was_let_in_is_told_so(cluster: Any) -> None:
    cluster.group("g", queue="default")
    cluster.settle()
    assert explain(cluster, "g")["verdict"] == "LetIn"
    assert explain(cluster, "nobody")["verdict"] == "Unknown"


def test_what_can_never_be_let_in_is_told_that_waiting_does_not_help(cluster: Any) -> None:
    cluster.queue("q", capability={"cpu": "4"})
    cluster.group("g", queue="q", minResources={"cpu": "9"})
    cluster.settle()
    answer = explain(cluster, "g")
    assert (answer["rule"], answer["minimum"]) == ("NeverFits", {"cpu": "9"})
    assert "waiting does not help" in answer["waysOut"][0]
