"""What somebody with a stuck job is told: who is in the way, what is needed, what there is, and the way out."""

from random import Random
from typing import Any

import pytest

from gang_scheduler.domain.answers.ways_out import ways_out
from gang_scheduler.domain.core import SchedulerCore
from gang_scheduler.domain.reasons.explain import Reason
from gang_scheduler.domain.reasons.upstream_words import available, in_gang, reason
from kube import Manifest

RACK = "topology.kubernetes.io/rack"


def ways(answer: Manifest) -> str:
    return "\n".join(answer["waysOut"])


def test_the_nearest_miss_names_the_node_its_rack_and_what_it_lacks(toy: Any) -> None:
    toy.node("a", cpu=8, gpu=8, labels={RACK: "r1"})
    toy.node("b", cpu=8, gpu=8, labels={RACK: "r2"})
    toy.pods("x", gpu=7, node="a")
    toy.pods("y", gpu=3, node="b")
    toy.pods("p", cpu=1, gpu=8)
    toy.settle()
    answer = toy.explain("Pod", "p")
    assert answer["nearestMiss"]["message"] == (
        "3 more example.com/gpu on node b (rack r2) would do for pod p; free there: example.com/gpu 5"
    )
    assert answer["need"]["example.com/gpu"] == "8" and answer["have"]["example.com/gpu"] == "5"
    assert "free 3 example.com/gpu on node b" in ways(answer)


def test_the_nearest_miss_names_the_one_rule_that_a_node_breaks(toy: Any) -> None:
    toy.node("a", cpu=1, labels={"disk": "fast"})
    toy.node("b", cpu=8)
    toy.pods("p", cpu=4, nodeSelector={"disk": "fast"})
    toy.settle()
    miss = toy.explain("Pod", "p")["nearestMiss"]
    assert (miss["node"], miss["rules"], miss["missing"]) == ("a", [], {"cpu": "3"})
    toy.pods("q", cpu=4, nodeSelector={"disk": "slow"})
    toy.settle()
    answer = toy.explain("Pod", "q")
    assert answer["nearestMiss"]["node"] == "b"
    assert "lack the label disk=slow" in answer["nearestMiss"]["message"]
    assert "node selector" in ways(answer)


def test_a_gang_is_told_how_many_fit_and_whose_end_it_waits_for(toy: Any) -> None:
    toy.node("n", cpu=4)
    annotations = {"tidegate.dev/running-estimate": "10m"}
    toy.pods("long", cpu=1, annotations={"tidegate.dev/running-estimate": "1h"})
    toy.pods("short", cpu=1, annotations=annotations)
    toy.settle()
    toy.group("g", 3)
    toy.pods("g", 3, group="g", cpu=1)
    toy.settle()
    answer = toy.explain("PodGroup", "g")
    assert (answer["gang"]["placed"], answer["gang"]["needed"]) == (2, 3)
    assert answer["after"] == ["default/short"]
    assert answer["estimateMs"] == toy.now + 600_000
    assert "a minimum of 2 members could start now" in ways(answer)


def test_who_could_be_evicted_with_more_priority_is_named(toy: Any) -> None:
    toy.node("n", cpu=2)
    toy.pods("low", cpu=1, priority=3)
    toy.pods("high", cpu=1, priority=9)
    toy.settle()
    toy.pods("p", cpu=1)
    toy.settle()
    answer = toy.explain("Pod", "p")
    assert (answer["evictable"], answer["priorityNeeded"]) == (["default/low"], 4)
    assert "with a priority of 4 or more (it has 0) it could take the room of default/low" in ways(answer)
    assert toy.explain("Pod", "p") == answer
    assert toy.evicted == []


def test_a_full_queue_is_shown_with_all_above_it_and_those_who_fill_it(toy: Any) -> None:
    toy.queues = {
        "dept": {"capability": {"cpu": 4}},
        "team": {"parent": "dept", "capability": {"cpu": 8}},
        "other": {"parent": "dept"},
    }
    toy.node("n", cpu=16)
    toy.group("big", 1, queue="other")
    toy.pods("big", group="big", cpu=3)
    toy.settle()
    toy.group("g", 1, queue="team")
    toy.pods("g", group="g", cpu=2)
    toy.settle()
    answer = toy.explain("PodGroup", "g")
    assert (answer["rule"], answer["blockedBy"]) == ("QueueCapability", "dept")
    assert answer["usedBy"] == [{"group": "default/big", "used": {"cpu": "3", "pods": "1"}}]
    assert [item["queue"] for item in answer["queues"]] == ["team", "dept"]
    assert answer["after"] == ["default/big"]
    assert "raise the capability of queue dept" in ways(answer)


def test_what_is_guaranteed_to_others_is_named_with_their_queues(toy: Any) -> None:
    toy.queues = {"prod": {"guarantee": {"cpu": 3}}, "dev": {}}
    toy.node("n", cpu=4)
    toy.group("g", 1, queue="dev")
    toy.pods("g", group="g", cpu=2)
    toy.settle()
    answer = toy.explain("PodGroup", "g")
    assert answer["rule"] == "GuaranteedToOthers"
    assert answer["guaranteedTo"] == [{"queue": "prod", "unused": {"cpu": "3"}}]
    assert "wait for work outside prod to end" in ways(answer)
    assert answer["estimate"].startswith("never as things are")


def test_room_that_is_guaranteed_to_others_is_not_said_to_be_there_already(toy: Any) -> None:
    toy.queues = {"prod": {"guarantee": {"cpu": 2}}, "dev": {}}
    toy.node("n", cpu=4)
    toy.group("busy", 1, queue="dev")
    toy.pods("busy", group="busy", cpu=1)
    toy.settle()
    toy.group("g", 1, queue="dev")
    toy.pods("g", group="g", cpu=2)
    toy.settle()
    answer = toy.explain("PodGroup", "g")
    assert answer["rule"] == "GuaranteedToOthers"
    assert answer["estimate"] == "not known: there is room on nodes, but it is guaranteed to prod"


def test_room_that_is_kept_for_others_is_named_with_its_nodes(toy: Any) -> None:
    toy.lingering = True
    toy.node("n", cpu=2)
    toy.pods("low", cpu=2, priority=1)
    toy.settle()
    toy.pods("high", cpu=2, priority=5)
    toy.settle()
    toy.pods("late", cpu=1, priority=1)
    toy.settle()
    assert toy.explain("Pod", "high")["rule"] == "RoomBeingFreed"
    assert toy.explain("Pod", "high")["after"] == ["default/low"]
    held = toy.explain("Pod", "late")["heldRoom"]
    assert [(item["for"], item["nodes"]) for item in held] == [(["default/high"], ["n"])]
    evicted = toy.explain("Pod", "low")
    assert (evicted["verdict"], evicted["rule"]) == ("Evicted", "PreemptedByPriority")
    assert evicted["evicted"]["by"] == "default/high"
    toy.gone("low")
    assert "evicted for default/high to start on n" in toy.explain("Pod", "low")["message"]


def test_behind_the_head_of_a_strict_queue_one_is_told_who_the_head_is(new_toy: Any) -> None:
    toy = new_toy(core=SchedulerCore(strict_fifo=True, preemption=False))
    toy.node("n", cpu=2)
    toy.pods("used", cpu=1, node="n")
    toy.pods("first", cpu=2, priority=2)
    toy.pods("second", cpu=1)
    toy.settle()
    answer = toy.explain("Pod", "second")
    assert (answer["rule"], answer["ahead"], answer["position"]) == ("BehindHeadOfQueue", ["default/first"], 2)
    assert "wait for default/first" in ways(answer)


def test_missing_members_of_a_role_are_counted(toy: Any) -> None:
    toy.node("n", cpu=8)
    toy.group("g", 2, minTaskMember={"ps": 1, "w": 1})
    toy.pods("g", 2, group="g", role="w", cpu=1)
    toy.settle()
    answer = toy.explain("PodGroup", "g")
    assert answer["rule"] == "NotEnoughPodsOfTask" and "0 of the 1 pod of role ps" in answer["message"]
    assert "have the missing pods created" in ways(answer)
    toy.group("h", 3)
    toy.pods("h", 2, group="h", cpu=1)
    toy.settle()
    assert toy.explain("PodGroup", "h")["rule"] == "NotEnoughTasks"


def test_what_can_never_fit_is_told_so_and_nobody_is_named_to_wait_for(toy: Any) -> None:
    toy.node("n", cpu=2)
    toy.pods("p", cpu=4)
    toy.settle()
    answer = toy.explain("Pod", "p")
    assert answer["rule"] == "NeverFits" and "waiting does not help" in ways(answer)
    assert "after" not in answer
    assert toy.message("p").startswith("0/1 nodes are available: 1 Insufficient cpu")


def test_who_is_too_large_for_what_is_lent_now_is_told_what_to_wait_for(toy: Any) -> None:
    toy.node("n", cpu=8, **{"kubernetes.io/batch-cpu": 1000})
    toy.pods("p", requests={"kubernetes.io/batch-cpu": 4000})
    toy.settle()
    answer = toy.explain("Pod", "p")
    assert "cannot start until a node lends more" in answer["message"] and "ask for less" in ways(answer)
    assert "waiting does not help" not in ways(answer)


def test_the_domain_that_comes_closest_is_named(toy: Any) -> None:
    for rack, nodes in (("r1", ("a", "b")), ("r2", ("c", "d"))):
        for name in nodes:
            toy.node(name, cpu=1)
        members = [{"type": "Node", "selector": {"exactMatch": {"name": name}}} for name in nodes]
        toy.put(
            {
                "apiVersion": "topology.volcano.sh/v1alpha1",
                "kind": "HyperNode",
                "metadata": {"name": rack},
                "spec": {"tier": 1, "members": members},
            }
        )
    toy.pods("used", cpu=1, node="a")
    toy.group("g", 3, networkTopology={"mode": "hard", "highestTierAllowed": 1})
    toy.pods("g", 3, group="g", cpu=1)
    toy.settle()
    nearest = toy.explain("PodGroup", "g")["nearestDomain"]
    assert nearest["message"] == "domain r2 of tier 1 comes closest: it has room for 2 of 3 members"


def test_why_a_pod_is_where_it_is_is_told_with_the_runners_up(toy: Any) -> None:
    toy.node("a", cpu=4)
    toy.node("b", cpu=4)
    toy.node("c", cpu=1)
    toy.pods("x", cpu=2, node="b")
    toy.pods("p", cpu=2)
    toy.settle()
    why = toy.explain("Pod", "p")["why"]
    assert (why["node"], why["score"], why["fitting"]) == ("b", 100.0, 2)
    assert [(item["node"], item["score"]) for item in why["runnersUp"]] == [("a", 50.0)]


def test_before_the_queues_are_known_that_is_the_reason(toy: Any) -> None:
    toy.pods("p", cpu=1)
    answer = toy.explain("Pod", "p")
    assert answer["rule"] == "NotReady" and "queue_manager" in ways(answer)


@pytest.mark.parametrize("rule", [rule for rule in Reason if rule is not Reason.READY])
def test_no_reason_is_without_a_way_out(rule: Reason) -> None:
    numbers = {"queue": "q", "nearestMiss": {"missing": {"cpu": "1"}, "node": "n"}, "ahead": ["default/first"]}
    assert all(ways_out(rule, numbers)) and ways_out(rule, numbers)


@pytest.mark.parametrize(
    ("phrase", "words"),
    [
        ("are cordoned", "node(s) were unschedulable"),
        ("have the taint gpu:NoSchedule", "node(s) had untolerated taint {gpu: }"),
        ("have the taint a/b=c:NoExecute", "node(s) had untolerated taint {a/b: c}"),
        ("have no free host port 80/TCP", "node(s) didn't have free ports for the requested pod ports"),
        ("have too little cpu (needs 2, most free 1 on n)", "Insufficient cpu"),
        ("have too little pods (needs 1, most free 0 on n)", "Too many pods"),
        ("would make the skew over zone larger than 1", "node(s) didn't match pod topology spread constraints"),
        ("are painted green", "node(s) are painted green"),
    ],
)
def test_every_phrase_has_kube_schedulers_word(phrase: str, words: str) -> None:
    assert reason(phrase) == words


def test_sentences_have_the_form_of_the_field() -> None:
    filters = [("have too little cpu (needs 2, most free 1 on n)", 3), ("have the taint t=x:NoSchedule", 2)]
    told = available(0, 5, filters)
    assert told.startswith("0/5 nodes are available: 3 Insufficient cpu (needs 2, most free 1 on n), ")
    assert "2 node(s) had untolerated taint {t: x}" in told
    assert in_gang(3, 4, [("Running", 1), ("Pending", 3)], 4, 1) == (
        "3/4 tasks in gang unschedulable: pod group is not ready, 3 Pending, 1 Running, 4 minAvailable; "
        "Pending: 2 Unschedulable, 1 Schedulable"
    )


def test_the_group_is_told_in_volcanos_form(toy: Any) -> None:
    toy.node("n", cpu=2)
    toy.group("g", 3)
    toy.pods("g", 3, group="g", cpu=1)
    toy.settle()
    (condition,) = toy.status("g")["conditions"]
    assert condition["message"].startswith(
        "3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; "
        "Pending: 1 Unschedulable, 2 Schedulable. 0/1 nodes are available: 1 Insufficient cpu"
    )


def _random_step(toy: Any, random: Random, number: int) -> None:
    match random.randrange(5):
        case 0 | 1:
            least = random.randint(1, 4)
            toy.group(f"g{number}", least, queue=random.choice(["a", "b"]))
            toy.pods(
                f"g{number}", least + 1, group=f"g{number}", cpu=random.randint(1, 3), priority=random.randrange(3)
            )
        case 2:
            toy.pods(f"p{number}", cpu=random.randint(1, 6), priority=random.randrange(4))
        case 3:
            bound = toy.bound()
            if bound:
                toy.finish(random.choice(bound))
        case _:
            toy.now += 400_000


def _ask_everything(toy: Any) -> None:
    for key in list(toy.store.objects):
        if key.kind in ("Pod", "PodGroup.scheduling.volcano.sh"):
            answer = toy.explain(key.kind, key.name)
            assert answer["verdict"] and (answer["verdict"] != "Waiting" or answer["message"])
    assert toy.core.check() == []


@pytest.mark.parametrize("seed", range(12))
def test_asking_changes_no_decision(new_toy: Any, seed: int) -> None:
    """Two schedulers live the same life; one of them is asked about everything all the time."""
    logs = []
    for asked in (False, True):
        random, toy = Random(seed), new_toy(core=SchedulerCore(), lingering=bool(seed % 2))
        toy.queues = {
            "a": {"deserved": {"cpu": 6}, "capability": {"cpu": 12}},
            "b": {"deserved": {"cpu": 10}},
            "default": {},
        }
        for name in "lmno":
            toy.node(name, cpu=4)
        for number in range(14):
            _random_step(toy, random, number)
            if asked:
                _ask_everything(toy)
            toy.settle()
            if asked:
                _ask_everything(toy)
        logs.append([(d.name, d.subject, d.message, d.mutations) for d in toy.log])
    assert logs[0] == logs[1]


def said(estimate: str) -> dict[str, str]:
    return {"tidegate.dev/running-estimate": estimate}


def test_a_member_beyond_the_minimum_has_an_estimate_of_its_own(toy: Any) -> None:
    """Two run; of two more the first comes when the shorter of the others has ended, the second after the longer one."""
    toy.node("n", cpu=4)
    toy.pods("short", cpu=1, annotations=said("10m"))
    toy.pods("long", cpu=1, annotations=said("1h"), priority=5)
    toy.settle()
    toy.group("g", 2)
    toy.pods("g", 4, group="g", cpu=1)
    toy.settle()
    first, second = toy.explain("Pod", "g-2"), toy.explain("Pod", "g-3")
    assert (first["membersAhead"], first["after"]) == (0, ["default/short"])
    assert first["estimateMs"] == toy.now + 600_000
    assert (second["membersAhead"], second["after"]) == (1, ["default/long", "default/short"])
    assert second["estimateMs"] == toy.now + 3_600_000
    assert "evictable" not in second
    assert toy.bound("g") == ["g-0", "g-1"]


def reserving(toy: Any, head: str, **busy: Any) -> None:
    """A node whose room is reserved for a head that has waited; ``late`` waits behind it."""
    toy.node("n", cpu=2)
    toy.pods("busy", cpu=1, **busy)
    toy.settle()
    toy.pods("head", cpu=2, priority=2, annotations=said(head) if head else {})
    toy.settle()
    toy.now += 300_000
    toy.settle()
    toy.pods("late", cpu=1, annotations=said("24h"))
    toy.settle()


def test_behind_reserved_room_the_estimate_counts_the_one_who_gets_it_first(new_toy: Any) -> None:
    toy = new_toy(core=SchedulerCore(preemption=False))
    reserving(toy, "30m", annotations=said("1h"))
    starts = toy.explain("Pod", "head")["estimateMs"]
    answer = toy.explain("Pod", "late")
    assert toy.bound() == ["busy"] and answer["behind"] == ["default/head"]
    assert answer["estimateMs"] == starts + 1_800_000
    assert "default/head, for whom room is reserved, should have started and ended" in answer["estimate"]
    assert toy.explain("Pod", "late") == answer


def test_when_nobody_says_how_long_the_head_runs_that_is_told(new_toy: Any) -> None:
    toy = new_toy(core=SchedulerCore(preemption=False))
    reserving(toy, "", annotations=said("1h"))
    answer = toy.explain("Pod", "late")
    assert answer["behind"] == ["default/head"] and "estimateMs" not in answer
    assert "nobody says when that is" in answer["estimate"]
