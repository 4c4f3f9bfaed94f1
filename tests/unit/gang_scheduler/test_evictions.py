"""Who is evicted for whom: preemption in a queue, reclaim between queues, gangs kept or taken whole."""

from typing import Any

import pytest

from gang_scheduler.domain.core import SchedulerCore

LABEL = {"matchLabels": {"app": "kept"}}


def budget(toy: Any, allowed: int) -> None:
    """A disruption budget of the pods with app=kept."""
    manifest = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}}
    toy.put({**manifest, "spec": {"selector": LABEL}, "status": {"disruptionsAllowed": allowed}})


@pytest.mark.parametrize(
    "policy", [{"preemption": False}, {"schedulers": frozenset({"tidegate", ""}), "preemption": False}]
)
def test_with_preemption_off_priority_waits(new_toy: Any, policy: Any) -> None:
    toy = new_toy(core=SchedulerCore(**policy))
    toy.node("n", cpu=1)
    toy.pods("low", cpu=1, priority=1, node="n")
    toy.pods("high", cpu=1, priority=9)
    toy.settle()
    assert toy.evicted == []


def test_who_was_bound_of_late_is_spared_until_its_cooldown_is_over(toy: Any) -> None:
    toy.node("n", cpu=1)
    toy.pods("low", cpu=1, priority=1, annotations={"volcano.sh/cooldown-time": "10m"})
    toy.settle()
    assert toy.where("low") == "n"
    toy.pods("high", cpu=1, priority=9)
    toy.settle()
    assert toy.evicted == []
    start = toy.now
    while not toy.evicted:
        toy.now = toy.core.deadline()
        toy.settle()
    assert toy.now == start + 600_000
    assert toy.evicted == ["low"]


@pytest.mark.parametrize(
    "marks", [{"labels": {"volcano.sh/cooldown-time": "1h"}}, {"annotations": {"volcano.sh/cooldown-time": "long"}}]
)
def test_a_cooldown_is_read_from_a_label_too_and_what_is_none_spares_nobody(toy: Any, marks: Any) -> None:
    toy.node("n", cpu=1)
    toy.pods("low", cpu=1, priority=1, **marks)
    toy.settle()
    toy.pods("high", cpu=1, priority=9)
    toy.settle()
    assert toy.evicted == ([] if "labels" in marks else ["low"])


@pytest.mark.parametrize("fixed", [False, True])
def test_what_its_elastic_quota_may_not_take_back_is_not_evicted_in_it_either(toy: Any, fixed: bool) -> None:
    quota = "quota.scheduling.koordinator.sh/"
    toy.queues = {"default": {}, "quota/a": {"deserved": {"cpu": 2}, "fixed": {"cpu": 2000}}}
    toy.node("n", cpu=1)
    labels = {quota + "name": "a"} | ({quota + "preemptible": "false"} if fixed else {})
    toy.pods("low", cpu=1, priority=1, labels=labels)
    toy.settle()
    assert toy.where("low") == "n"
    toy.pods("high", cpu=1, priority=9, labels=labels)
    toy.settle()
    assert toy.evicted == ([] if fixed else ["low"])


def test_free_room_is_taken_before_anybody_goes(toy: Any) -> None:
    toy.node("a", cpu=1)
    toy.node("b", cpu=1)
    toy.pods("low", cpu=1, priority=1, node="a")
    toy.pods("high", cpu=1, priority=9)
    toy.settle()
    assert (toy.where("high"), toy.evicted) == ("b", [])


def test_a_small_job_behind_does_not_take_the_idle_room_that_a_plan_counts_on(toy: Any) -> None:
    toy.lingering = True
    toy.node("a", cpu=1)
    toy.node("b", cpu=1)
    toy.pods("low", cpu=1, priority=1, node="a")
    toy.group("g", 2)
    toy.pods("g", 2, group="g", cpu=1, priority=9)
    toy.pods("small", cpu=1, priority=1)
    toy.settle()
    assert (toy.where("small"), toy.evicted) == ("", ["low"])


def test_a_budget_is_broken_only_when_nothing_else_will_do(toy: Any) -> None:
    toy.node("a", cpu=1)
    toy.node("b", cpu=1)
    budget(toy, 0)
    toy.pods("kept", cpu=1, priority=1, node="a", labels={"app": "kept"})
    toy.pods("other", cpu=1, priority=5, node="b")
    toy.pods("first", cpu=1, priority=9)
    toy.settle()
    assert toy.evicted == ["other"]
    toy.pods("second", cpu=1, priority=9)
    toy.settle()
    assert toy.evicted == ["other", "kept"]


def test_a_wish_in_vain_is_looked_at_again_when_something_less_important_starts(toy: Any) -> None:
    """The large pod finds one victim too few at first; then a small pod fills the gap and is one."""
    toy.node("n", cpu=4)
    toy.pods("top", cpu=2, priority=9, node="n")
    toy.pods("large", cpu=3, priority=5)
    toy.settle()
    toy.pods("low", cpu=2, priority=1)
    toy.settle()
    assert toy.evicted == []
    toy.delete(toy.pod("top").key)
    toy.settle()
    assert toy.evicted == ["low"]
    assert toy.where("large") == "n"


def test_surplus_preempts_nobody_but_a_lost_member_of_the_minimum_does(toy: Any) -> None:
    toy.node("n", cpu=3)
    toy.group("g", 2)
    toy.pods("g", 2, group="g", cpu=1, priority=9)
    toy.pods("low", cpu=1, priority=1, node="n")
    toy.settle()
    toy.pods("extra", group="g", cpu=1, priority=9)
    toy.settle()
    assert toy.evicted == []
    toy.finish("g-0", phase="Failed")
    toy.delete(toy.pod("extra").key)
    toy.pods("again", group="g", cpu=2, priority=9)
    toy.settle()
    assert toy.evicted == ["low"]
    assert toy.where("again") == "n"


def test_members_of_a_bundle_go_together(toy: Any) -> None:
    """Each gang of a bundle needs the other, so either both stay or both go."""
    groups = {"gang.scheduling.koordinator.sh/groups": '["default/a", "default/b"]'}
    toy.node("n", cpu=2)
    for name in "ab":
        toy.group(name, 1, annotations=groups)
        toy.pods(f"{name}-0", group=name, cpu=1, priority=1)
    toy.settle()
    assert len(toy.bound()) == 2
    toy.pods("high", cpu=1, priority=9)
    toy.settle()
    assert sorted(toy.evicted) == ["a-0", "b-0"]


QUEUES: Any = {
    "root": {"deserved": {"cpu": 8}},
    "left": {"parent": "root", "deserved": {"cpu": 4}},
    "right": {"parent": "root", "deserved": {"cpu": 4}},
    "l1": {"parent": "left", "deserved": {"cpu": 2}},
    "l2": {"parent": "left", "deserved": {"cpu": 2}},
    "r1": {"parent": "right", "deserved": {"cpu": 2}},
    "r2": {"parent": "right", "deserved": {"cpu": 2}},
}


def test_the_nearest_queue_gives_first(toy: Any) -> None:
    toy.queues = QUEUES
    toy.node("n", cpu=8)
    toy.pods("l1", 3, cpu=1, node="n", queue="l1")
    toy.pods("r1", 5, cpu=1, node="n", queue="r1")
    toy.pods("new", cpu=1, queue="l2")
    toy.settle()
    assert [name[:2] for name in toy.evicted] == ["l1"]
    toy.pods("more", cpu=1, queue="l2")
    toy.settle()
    assert [name[:2] for name in toy.evicted] == ["l1", "r1"]


def test_a_queue_whose_department_has_its_share_takes_nothing_from_another(toy: Any) -> None:
    """l2 is below its own, but left has what it deserves, so only l1 may give, which has no more than it deserves."""
    toy.queues = {**QUEUES, "l1": {"parent": "left", "deserved": {"cpu": 4}}}
    toy.node("n", cpu=8)
    toy.pods("l1", 4, cpu=1, node="n", queue="l1")
    toy.pods("r1", 4, cpu=1, node="n", queue="r1")
    toy.pods("new", cpu=1, queue="l2")
    toy.settle()
    assert toy.evicted == []


def test_a_queue_at_its_share_of_plenty_still_gives_what_is_short(toy: Any) -> None:
    """b holds exactly its memory but too many cpus; only cpus are short."""
    toy.queues = {
        "a": {"deserved": {"cpu": 2, "memory": "8Gi"}},
        "b": {"deserved": {"cpu": 2, "memory": "4Gi"}},
    }
    toy.node("n", cpu=4, memory="64Gi")
    toy.pods("b", 4, cpu=1, memory="1Gi", node="n", queue="b")
    toy.pods("a", 2, cpu=1, memory="1Gi", queue="a")
    toy.settle()
    assert len(toy.evicted) == 2
    assert len(toy.bound("a")) == 2


def test_two_queues_do_not_take_turns(toy: Any) -> None:
    toy.queues = {"a": {"deserved": {"cpu": 2}}, "b": {"deserved": {"cpu": 2}}}
    toy.node("n", cpu=4)
    toy.pods("a", 4, cpu=1, node="n", queue="a")
    toy.pods("b", 4, cpu=1, queue="b")
    toy.settle()
    gone = list(toy.evicted)
    assert len(gone) == 2
    toy.pods("again", 2, cpu=1, queue="a")
    toy.settle()
    assert toy.evicted == gone
    assert len(toy.bound("b")) == 2


def test_reclaim_says_so(toy: Any) -> None:
    toy.queues = {"a": {"deserved": {"cpu": 1}}, "b": {}}
    toy.node("n", cpu=1)
    toy.pods("b", cpu=1, priority=9, node="n", queue="b")
    toy.pods("a", cpu=1, queue="a")
    (made,) = [decision for decision in toy.settle() if decision.name == "QueueReclaimed"]
    assert made.reason == "ReclaimedByQueue"
    assert "as queue a takes back what it deserves: default/b (priority 9, queue b, on n)" in made.message
