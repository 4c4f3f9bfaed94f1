"""The life of a decision in the core: assumed, settled, explained once, made again after a restart."""

from typing import Any

import pytest

from kube import Decision, Event, Key, Outcome, merge


def decide(toy: Any, *in_flight: Key) -> list[Decision]:
    decided: list[Decision] = toy.core.decide(toy.now, frozenset(in_flight))
    return decided


def ready(toy: Any, **node: Any) -> Any:
    toy.node("n", **(node or {"cpu": 4}))
    toy.entitle()
    return toy


def test_deciding_changes_nothing_and_comes_out_the_same_twice(new_toy: Any) -> None:
    made = []
    for _ in range(2):
        toy = ready(new_toy())
        toy.group("g", 2)
        toy.pods("g", 2, group="g", cpu=1)
        made.append(decide(toy))
        assert decide(toy) == made[-1]
        assert toy.core.check() == []
        assert toy.core.cluster.room.table.used.sum() == 0
    assert made[0] == made[1]


def test_what_is_assumed_is_taken_until_its_outcome(toy: Any) -> None:
    ready(toy)
    toy.pods("a", cpu=3)
    (placed,) = decide(toy)
    toy.core.assume("d1", placed)
    toy.pods("b", cpu=2)
    assert all(decision.name == "WaitExplained" for decision in decide(toy, placed.subject))
    assert toy.core.check() == []


def test_a_refused_decision_gives_the_room_back_and_is_made_again(toy: Any) -> None:
    ready(toy)
    toy.group("g", 2)
    toy.pods("g", 2, group="g", cpu=2)
    (placed,) = decide(toy)
    toy.core.assume("d1", placed)
    assert decide(toy, placed.subject) == []
    toy.core.settle(Outcome("d1", placed.name, placed.subject, False, {"": "node n changed"}))
    assert toy.core.check() == []
    assert toy.core.cluster.room.table.used.sum() == 0
    (again,) = decide(toy)
    assert again.mutations == placed.mutations


def test_a_group_whose_decision_is_on_its_way_is_left_alone(toy: Any) -> None:
    ready(toy)
    toy.group("g", 1)
    toy.pods("g-0", group="g", cpu=1)
    subject = toy.pod("g-0").key._replace(kind="PodGroup.scheduling.volcano.sh", name="g")
    assert decide(toy, subject) == []
    assert [decision.name for decision in decide(toy)] == ["GangPlaced"]


def test_a_successor_counts_the_decisions_without_outcome(new_toy: Any) -> None:
    toy = ready(new_toy())
    toy.pods("a", cpu=3)
    (placed,) = decide(toy)
    successor = new_toy()
    successor.store = toy.store
    successor.fold([Event(None, item) for item in toy.store.objects.values()])
    successor.entitle()
    successor.core.assume("d1", placed)
    successor.pods("b", cpu=3)
    assert all(decision.name == "WaitExplained" for decision in decide(successor, placed.subject))
    successor.apply(placed)
    successor.core.settle(Outcome("d1", placed.name, placed.subject, True))
    assert successor.core.check() == []
    assert successor.where("a") == "n"


def test_folding_a_fact_twice_changes_nothing(toy: Any) -> None:
    ready(toy)
    toy.pods("a", cpu=3)
    toy.settle()
    for item in toy.store.objects.values():
        toy.fold([Event(item, item)])
    assert toy.core.check() == []
    assert toy.settle() == []


def test_a_pod_made_again_under_its_name_is_another_pod(toy: Any) -> None:
    ready(toy)
    toy.pods("a", cpu=3)
    toy.settle()
    old = toy.pod("a")
    body = {**old.body, "spec": {name: part for name, part in old.spec.items() if name != "nodeName"}}
    toy.fold([toy.store.put(old.changed(uid="another", body=body, status={"phase": "Pending"}))])
    assert toy.core.check() == []
    toy.settle()
    assert toy.where("a") == "n"


def test_a_waiting_pod_is_told_once_and_not_for_every_number_that_changes(toy: Any) -> None:
    ready(toy)
    toy.pods("big", cpu=8)
    toy.pods("rest", cpu=6)
    toy.settle()
    words = len([decision for decision in toy.log if decision.name == "WaitExplained"])
    toy.node("m", cpu=3)
    toy.settle()
    toy.node("m", cpu=5)
    toy.settle()
    assert len([decision for decision in toy.log if decision.name == "WaitExplained"]) == words
    assert toy.settle() == []


def test_a_group_that_waited_shows_that_it_runs(toy: Any) -> None:
    ready(toy, cpu=1)
    toy.group("g", 2)
    toy.pods("g", 2, group="g", cpu=1)
    toy.settle()
    (condition,) = toy.status("g")["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "Unschedulable",
        "True",
        "NotEnoughResources",
    )
    toy.node("m", cpu=1)
    toy.settle()
    states = {item["type"]: item["status"] for item in toy.status("g")["conditions"]}
    assert states == {"Unschedulable": "False", "Scheduled": "True"}
    assert toy.status("g")["running"] == 2


def test_a_group_whose_pods_are_done_is_completed(toy: Any) -> None:
    ready(toy)
    toy.group("g", 2)
    toy.pods("g", 2, group="g", cpu=1)
    toy.settle()
    toy.finish("g-0")
    toy.settle()
    assert toy.status("g")["phase"] == "Running"
    toy.finish("g-1", phase="Failed")
    toy.settle()
    status = toy.status("g")
    assert (status["phase"], status["succeeded"], status["failed"]) == ("Completed", 1, 1)


def test_all_pods_of_a_gang_share_one_message(toy: Any) -> None:
    ready(toy)
    toy.group("g", 3)
    toy.pods("g", 3, group="g", cpu=3)
    (explained,) = decide(toy)
    conditions = [m.patch["conditions"][0] for m in explained.mutations if m.key.kind == "Pod"]
    assert len(conditions) == 3
    assert all(condition is conditions[0] for condition in conditions)


def test_one_decision_binds_the_minimum_and_the_surplus_of_a_gang(toy: Any) -> None:
    ready(toy)
    toy.group("g", 2)
    toy.pods("g", 3, group="g", cpu=1)
    (placed,) = decide(toy)
    assert placed.name == "GangPlaced"
    assert len([mutation for mutation in placed.mutations if mutation.node == "n"]) == 3
    toy.settle()
    toy.pods("g-3", group="g", cpu=1)
    assert [decision.name for decision in decide(toy)] == ["SurplusPlaced"]


def test_requests_that_cannot_be_read_are_told(toy: Any) -> None:
    ready(toy)
    toy.pods("p", cpu="much")
    toy.settle()
    assert "cannot be read" in toy.message("p")


def test_lifting_a_gate_or_a_label_is_seen(toy: Any) -> None:
    ready(toy)
    toy.pods("p", cpu=1, schedulingGates=[{"name": "hold"}])
    toy.settle()
    assert toy.where("p") == ""
    toy.pods("p", cpu=1)
    toy.settle()
    pod = toy.pod("p")
    toy.fold([toy.store.put(pod.changed(metadata=merge(pod.metadata, {"labels": {"a": "b"}})))])
    assert toy.core.check() == []
    assert toy.where("p") == "n"


@pytest.mark.parametrize(
    ("kind", "name", "verdict"),
    [
        ("Pod", "runs", "Placed"),
        ("Pod", "done", "Finished"),
        ("Pod", "large", "Waiting"),
        ("Pod", "nobody", "Unknown"),
        ("PodGroup", "half", "Placed"),
        ("PodGroup", "gated", "Gated"),
        ("PodGroup", "outside", "NotLetIn"),
        ("PodGroup", "empty", "Waiting"),
        ("Job", "owner", "Placed"),
    ],
)
def test_explain_answers_for_pods_groups_and_jobs(toy: Any, kind: str, name: str, verdict: str) -> None:
    ready(toy)
    toy.pods("runs", cpu=1)
    toy.pods("done", cpu=1)
    toy.group("half", 1)
    toy.pods("half", 2, group="half", cpu=2)
    toy.group("gated", 1)
    toy.pods("gated-0", group="gated", schedulingGates=[{"name": "hold"}])
    toy.group("outside", 1, phase="Pending")
    toy.pods("outside-0", group="outside")
    toy.group("empty", 1)
    toy.pods("large", cpu=9)
    group = toy.store.objects[Key("PodGroup.scheduling.volcano.sh", "default", "half")]
    owner = {"kind": "Job", "name": "owner", "uid": "u", "controller": True}
    toy.fold([toy.store.put(group.changed(metadata={**group.metadata, "ownerReferences": [owner]}))])
    toy.settle()
    toy.finish("done")
    toy.settle()
    answer = toy.explain(kind, name)
    assert answer["verdict"] == verdict
    assert answer["message"]


def test_explain_tells_the_place_in_the_queue_and_the_nearest_miss(toy: Any) -> None:
    ready(toy)
    toy.pods("a-first", cpu=9, priority=5)
    toy.pods("b-second", cpu=5)
    toy.settle()
    answer = toy.explain("Pod", "b-second")
    assert (answer["position"], answer["rule"]) == (2, "NeverFits")
    assert answer["nearestMiss"]["message"] == "1 more cpu on node n would do for pod b-second; free there: cpu 4"
    assert answer["nodeFilters"]


def test_an_unknown_question_is_an_error(toy: Any) -> None:
    with pytest.raises(KeyError):
        toy.core.query("weather", {})
