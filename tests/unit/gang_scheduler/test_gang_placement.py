"""Gangs start whole or not at all."""

from typing import Any

import pytest

from kube import Key

KOORDINATOR = "gang.scheduling.koordinator.sh/"
KUBERNETES_GROUP = "PodGroup.scheduling.k8s.io"


def test_a_gang_is_placed_whole_or_not_at_all(toy: Any) -> None:
    for number in range(3):
        toy.node(f"n{number}", cpu=1)
    toy.group("g", 4)
    toy.pods("g", 4, group="g", cpu=1)
    toy.settle()
    assert toy.bound() == []
    assert "3 of 4 members of g fit, 4 are needed at once" in toy.message("g-0")
    toy.node("extra", cpu=1)
    toy.settle()
    assert len(toy.bound()) == 4
    assert toy.status("g")["phase"] == "Running"


def test_members_beyond_the_minimum_fill_the_room_that_is_left(toy: Any) -> None:
    toy.node("n", cpu=3)
    toy.group("g", 2)
    toy.pods("g", 4, group="g", cpu=1)
    toy.settle()
    assert toy.bound() == ["g-0", "g-1", "g-2"]
    assert toy.status("g")["phase"] == "Running"
    assert "cpu" in toy.message("g-3")


def test_the_minimum_of_the_next_gang_goes_before_the_surplus_of_the_first(toy: Any) -> None:
    toy.node("n", cpu=4)
    toy.group("a", 1)
    toy.group("b", 2)
    toy.pods("a", 4, group="a", cpu=1)
    toy.pods("b", 2, group="b", cpu=1)
    toy.settle()
    assert toy.bound() == ["a-0", "a-1", "b-0", "b-1"]


def test_every_role_needs_its_minimum(toy: Any) -> None:
    toy.node("n1", cpu=5)
    toy.group("j", 5, minTaskMember={"r1": 2, "r2": 2})
    toy.pods("j-r1", 6, group="j", role="r1", cpu=1)
    toy.pods("j-r2", 2, group="j", role="r2", cpu=1)
    toy.settle()
    assert len(toy.bound("j-r2")) == 2
    assert len(toy.bound("j-r1")) == 3


def test_role_minima_hold_also_above_the_gangs_own_minimum(toy: Any) -> None:
    toy.node("n1", cpu=1, labels={"role": "master"})
    toy.node("n2", cpu=2, labels={"role": "worker"})
    toy.group("g", 2, minTaskMember={"master": 2})
    toy.pods("m", 2, group="g", role="master", cpu=1, nodeSelector={"role": "master"})
    toy.pods("w", 2, group="g", role="worker", cpu=1, nodeSelector={"role": "worker"})
    toy.settle()
    assert toy.bound() == []
    toy.node("n3", cpu=1, labels={"role": "master"})
    toy.settle()
    assert len(toy.bound()) == 4


def test_members_that_fit_take_the_place_of_those_that_do_not(toy: Any) -> None:
    """Any two members make the minimum; the two first in order need a node that is not there."""
    toy.node("n", cpu=4)
    toy.group("g", 2)
    toy.pods("a", 2, group="g", cpu=1, nodeSelector={"disk": "fast"})
    toy.pods("b", 3, group="g", cpu=1)
    toy.settle()
    assert toy.bound() == ["b-0", "b-1", "b-2"]


def test_the_shape_with_the_fewest_nodes_is_placed_first(toy: Any) -> None:
    """Were the picky pod placed last, the others would have filled its only node."""
    toy.node("a", cpu=2, labels={"disk": "fast"})
    toy.node("b", cpu=4)
    toy.group("g", 5)
    toy.pods("easy", 4, group="g", cpu=1)
    toy.pods("picky", group="g", cpu=2, nodeSelector={"disk": "fast"})
    toy.settle()
    assert len(toy.bound()) == 5


def test_a_gated_member_does_not_count(toy: Any) -> None:
    toy.node("n", cpu=4)
    toy.group("g", 2)
    toy.pods("g-0", group="g", cpu=1, schedulingGates=[{"name": "example.com/hold"}])
    toy.pods("g-1", group="g", cpu=1)
    toy.settle()
    assert toy.bound() == []
    assert "1 of the 2 pods" in toy.message("g-1")
    assert toy.message("g-0") == ""
    assert toy.explain("Pod", "g-0")["verdict"] == "Gated"
    toy.pods("g-0", group="g", cpu=1, schedulingGates=[])
    toy.settle()
    assert toy.bound() == ["g-0", "g-1"]


def test_failed_members_do_not_count_and_succeeded_ones_do(toy: Any) -> None:
    toy.node("n", cpu=2)
    toy.group("g", 2)
    toy.pods("p", 2, group="g", cpu=1)
    toy.settle()
    toy.finish("p-0", "p-1", phase="Failed")
    toy.pods("q-0", group="g", cpu=1)
    toy.settle()
    assert toy.where("q-0") == ""
    toy.finish("p-1", phase="Succeeded")
    toy.settle()
    assert toy.where("q-0") == "n"


def test_a_gang_below_its_minimum_keeps_running_and_takes_a_replacement(toy: Any) -> None:
    toy.node("n", cpu=3)
    toy.group("g", 3)
    toy.pods("g", 3, group="g", cpu=1)
    toy.settle()
    toy.delete(toy.pod("g-0").key)
    assert toy.settle() == [] or toy.status("g")["phase"] == "Running"
    assert toy.bound() == ["g-1", "g-2"]
    toy.pods("g-3", group="g", cpu=1)
    toy.settle()
    assert toy.where("g-3") == "n"


def test_a_gang_below_its_minimum_whose_replacement_waits_is_unknown(toy: Any) -> None:
    toy.node("n", cpu=2)
    toy.group("g", 2)
    toy.pods("g", 2, group="g", cpu=1)
    toy.settle()
    toy.delete(toy.pod("g-0").key)
    toy.pods("g-2", group="g", cpu=2)
    toy.settle()
    assert toy.status("g")["phase"] == "Unknown"


def test_a_bundle_starts_whole_or_not_at_all(toy: Any) -> None:
    toy.node("n1", cpu=4)
    for pair in ("ab", "cd"):
        names = "[" + ",".join(f'"default/{name}"' for name in pair) + "]"
        for name in pair:
            toy.group(name, 2, annotations={KOORDINATOR + "groups": names})
    for name in "acbd":
        toy.pods(name, 2, group=name, cpu=1)
    toy.settle()
    assert toy.bound() == ["a-0", "a-1", "b-0", "b-1"]
    toy.finish("a-0", "a-1", "b-0", "b-1")
    toy.settle()
    assert toy.bound("c") + toy.bound("d") == ["c-0", "c-1", "d-0", "d-1"]


def test_pods_name_their_gang_in_annotations(toy: Any) -> None:
    annotations = {KOORDINATOR + "name": "team", KOORDINATOR + "min-available": "3"}
    toy.node("n1", cpu=4)
    toy.pods("w", 4, cpu=2, annotations=annotations)
    toy.settle()
    assert toy.bound() == []
    toy.node("n2", cpu=2)
    toy.settle()
    assert toy.bound() == ["w-0", "w-1", "w-2"]


@pytest.mark.parametrize(
    ("group", "label"),
    [
        ("scheduling.x-k8s.io", "scheduling.x-k8s.io/pod-group"),
        ("scheduling.sigs.k8s.io", "pod-group.scheduling.sigs.k8s.io"),
    ],
)
def test_pods_name_a_group_of_the_scheduler_plugins_by_label(toy: Any, group: str, label: str) -> None:
    toy.put(
        {"apiVersion": f"{group}/v1alpha1", "kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 3}}
    )
    toy.node("n1", cpu=2)
    toy.pods("w", 3, cpu=1, labels={label: "g"})
    toy.settle()
    assert toy.bound() == []
    toy.node("n2", cpu=1)
    toy.settle()
    assert toy.bound() == ["w-0", "w-1", "w-2"]


def kubernetes_group(toy: Any, policy: Any, **spec: Any) -> None:
    """Kubernetes' own PodGroup ``g``."""
    group = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": "g"}}
    toy.put({**group, "spec": {"schedulingPolicy": policy, **spec}})


def test_pods_name_a_group_of_kubernetes_in_their_spec(toy: Any) -> None:
    kubernetes_group(toy, {"gang": {"minCount": 3}})
    toy.node("n1", cpu=2)
    toy.pods("w", 3, cpu=1, schedulingGroup={"podGroupName": "g"})
    toy.settle()
    assert toy.bound() == []
    condition = toy.store.get(Key(KUBERNETES_GROUP, "default", "g")).status["conditions"][0]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "PodGroupScheduled",
        "False",
        "Unschedulable",
    )
    toy.node("n2", cpu=1)
    toy.settle()
    assert toy.bound() == ["w-0", "w-1", "w-2"]
    condition = toy.store.get(Key(KUBERNETES_GROUP, "default", "g")).status["conditions"][0]
    assert (condition["type"], condition["status"]) == ("PodGroupScheduled", "True")


def test_pods_of_a_basic_group_of_kubernetes_start_one_by_one(toy: Any) -> None:
    kubernetes_group(toy, {"basic": {}})
    toy.node("n1", cpu=2)
    toy.pods("big", cpu=3, schedulingGroup={"podGroupName": "g"})
    toy.pods("w", 3, cpu=1, schedulingGroup={"podGroupName": "g"})
    toy.settle()
    assert toy.bound() == ["w-0", "w-1"]


def test_a_group_of_kubernetes_has_the_priority_of_its_class(toy: Any) -> None:
    toy.put({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9})
    toy.node("n1", cpu=2)
    toy.pods("plain", cpu=1)
    kubernetes_group(toy, {"gang": {"minCount": 2}}, priorityClassName="high")
    toy.pods("w", 2, cpu=1, schedulingGroup={"podGroupName": "g"})
    toy.settle()
    assert toy.bound() == ["w-0", "w-1"]


def test_pods_of_a_group_that_does_not_exist_wait_for_it(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.pods("p", group="later", cpu=1)
    toy.settle()
    assert toy.message("p") == "PodGroup default/later does not exist"
    toy.group("later", 1)
    toy.settle()
    assert toy.where("p") == "n1"


def test_a_group_that_was_not_let_in_is_left_alone(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.group("g", 1, phase="Pending")
    toy.pods("g-0", group="g", cpu=1)
    assert toy.settle() == []
    assert toy.explain("Pod", "g-0")["verdict"] == "NotLetIn"
    toy.group("g", 1)
    toy.settle()
    assert toy.where("g-0") == "n1"


SHARDS = {
    "name": "shard",
    "subGroupSize": 2,
    "labelSelector": {"matchLabels": {"app": "t"}},
    "matchLabelKeys": ["shard"],
}


def test_all_sub_groups_that_the_minimum_asks_for_start_together(toy: Any) -> None:
    toy.node("n", cpu=3)
    toy.group("g", 2, subGroupPolicy=[SHARDS | {"minSubGroups": 2}])
    for shard in "ab":
        toy.pods(shard, 2, group="g", cpu=1, labels={"app": "t", "shard": shard})
    toy.settle()
    assert toy.bound() == []
    toy.node("extra", cpu=1)
    toy.settle()
    assert len(toy.bound()) == 4


def test_surplus_sub_groups_start_whole_one_by_one(toy: Any) -> None:
    """Three of six places are taken by nothing: the third sub-group would get only one of its two."""
    toy.node("n", cpu=5)
    toy.group("g", 2, subGroupPolicy=[SHARDS | {"minSubGroups": 1}])
    for shard in "abc":
        toy.pods(shard, 2, group="g", cpu=1, labels={"app": "t", "shard": shard})
    toy.settle()
    assert toy.bound() == ["a-0", "a-1", "b-0", "b-1"]


def test_members_that_ask_for_nothing_count(toy: Any) -> None:
    toy.node("n0", cpu=2)
    toy.node("n1", cpu=2)
    toy.group("g", 6)
    toy.pods("w", 4, group="g", cpu=1)
    toy.pods("z", 2, group="g")
    toy.settle()
    assert len(toy.bound()) == 6


def test_of_two_gangs_that_fit_one_at_a_time_the_second_holds_nothing(toy: Any) -> None:
    toy.node("n", cpu=4)
    for name in "ba":
        toy.group(name, 3)
        toy.pods(name, 3, group=name, cpu=1)
    toy.settle()
    assert toy.bound() == ["a-0", "a-1", "a-2"]
    toy.delete(*(toy.pod(f"a-{number}").key for number in range(3)))
    toy.settle()
    assert len(toy.bound("b")) == 3


def test_the_pods_of_a_job_with_quota_are_told_about_the_job_by_its_name(toy: Any) -> None:
    toy.node("n", cpu=4)
    toy.pods("j-0", cpu=1, annotations={"tidegate.dev/quota-of": "Job/j/4"})
    toy.settle()
    assert "1 of the 4 pods that j needs at once is there" in toy.message("j-0")
    assert toy.explain("Job", "j")["verdict"] == "Waiting"


def test_a_group_without_a_minimum_starts_with_whoever_fits(toy: Any) -> None:
    toy.node("n", cpu=2)
    toy.group("g", 0)
    toy.pods("p", 3, group="g", cpu=1)
    toy.settle()
    assert len(toy.bound("p")) == 2
