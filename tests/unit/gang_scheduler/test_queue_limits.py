"""What queues may use, and who goes first."""

from typing import Any

from gang_scheduler.domain.core import SchedulerCore


def test_nothing_is_placed_before_entitlements_were_heard(toy: Any) -> None:
    toy.node("n", cpu=4)
    toy.pods("p", cpu=1)
    assert toy.core.decide(toy.now, frozenset()) == []
    toy.settle()
    assert toy.where("p") == "n"


def test_capability_is_a_hard_cap(toy: Any) -> None:
    toy.queues = {"q1": {"capability": {"cpu": 2}}}
    toy.node("n", cpu=8)
    toy.pods("p", 4, queue="q1", cpu=1)
    toy.settle()
    assert toy.bound() == ["p-0", "p-1"]
    assert toy.message("p-2") == "queue q1: cpu capability 2, used 2, pod p-2 needs 1"
    toy.queues["q1"]["capability"]["cpu"] = 3
    toy.entitle()
    toy.settle()
    assert toy.bound() == ["p-0", "p-1", "p-2"]


def test_the_capability_of_a_parent_holds_for_its_children_together(toy: Any) -> None:
    toy.queues = {
        "dept": {"capability": {"cpu": 4}},
        "team-a": {"parent": "dept"},
        "team-b": {"parent": "dept"},
        "team-c": {"parent": "dept", "capability": {"cpu": 4}},
    }
    toy.node("n", cpu=8)
    toy.pods("a", queue="team-a", cpu=2)
    toy.pods("b", queue="team-b", cpu=2)
    toy.pods("c", queue="team-c", cpu=1)
    toy.settle()
    assert toy.bound() == ["a", "b"]
    assert "queue dept: cpu capability 4, used 4" in toy.message("c")
    toy.delete(toy.pod("b").key)
    toy.settle()
    assert toy.where("c") == "n"


def test_only_the_resources_that_a_job_asks_for_count(toy: Any) -> None:
    toy.queues = {"q1": {"capability": {"cpu": 4, "memory": "4Gi"}}}
    toy.node("n", cpu=8, memory="32Gi")
    toy.pods("full", queue="q1", cpu=1, memory="4Gi")
    toy.settle()
    toy.pods("cpu-only", queue="q1", cpu=1)
    toy.pods("both", queue="q1", cpu=1, memory="1Gi")
    toy.settle()
    assert toy.bound() == ["cpu-only", "full"]
    assert "memory" in toy.message("both")


def test_what_a_cap_does_not_name_is_free_and_zero_forbids(toy: Any) -> None:
    toy.queues = {"unnamed": {"capability": {"cpu": 10}}, "none": {"capability": {"cpu": 10, "example.com/gpu": 0}}}
    toy.node("n", cpu=16, gpu=4)
    toy.pods("a", queue="unnamed", cpu=1, gpu=2)
    toy.pods("b", queue="none", cpu=1, gpu=1)
    toy.pods("c", queue="none", cpu=1)
    toy.settle()
    assert toy.bound() == ["a", "c"]
    assert "example.com/gpu" in toy.message("b")


def test_demand_beyond_63_bits_does_not_wrap(toy: Any) -> None:
    toy.queues = {"q": {"capability": {"example.com/gpu": 4}}, "vast": {"capability": {"example.com/gpu": "100P"}}}
    toy.node("n", cpu=16, gpu=8)
    toy.group("huge", 2, queue="q")
    toy.pods("huge", 2, group="huge", gpu="9223372036854775807")
    toy.pods("also-huge", queue="vast", gpu="9223372036854775807")
    toy.settle()
    assert toy.bound() == []
    assert "example.com/gpu" in toy.message("huge-0")
    toy.pods("p", 3, queue="q", gpu=2)
    toy.pods("v", queue="vast", gpu=1)
    toy.settle()
    assert toy.bound() == ["p-0", "p-1", "v"]


def test_the_queue_with_less_of_its_share_is_served_first(toy: Any) -> None:
    toy.queues = {"alfa": {"deserved": {"cpu": 2}}, "beta": {"deserved": {"cpu": 2}}}
    toy.node("n", cpu=4)
    toy.pods("a-0", queue="alfa", cpu=1, node="n")
    toy.pods("a-1", queue="alfa", cpu=2)
    toy.pods("b-0", queue="beta", cpu=2)
    toy.settle()
    assert toy.bound() == ["a-0", "b-0"]


def test_two_equal_queues_take_turns(toy: Any) -> None:
    toy.queues = {"qa": {"deserved": {"cpu": 3}}, "qb": {"deserved": {"cpu": 3}}}
    toy.node("n", cpu=6)
    toy.pods("a", 6, queue="qa", cpu=1)
    toy.pods("b", 6, queue="qb", cpu=1)
    toy.settle()
    assert len(toy.bound("a")) == len(toy.bound("b")) == 3


def test_the_queue_of_higher_priority_goes_first(toy: Any) -> None:
    toy.queues = {"alfa": {"priority": 1}, "beta": {"priority": 10}}
    toy.node("n", cpu=2)
    toy.pods("a", queue="alfa", cpu=2)
    toy.pods("b", queue="beta", cpu=2)
    toy.settle()
    assert toy.bound() == ["b"]


def test_in_a_queue_priority_then_age_then_name_decide(toy: Any) -> None:
    toy.node("n", cpu=1)
    toy.pods("busy", cpu=1, priority=10, node="n")
    toy.pods("z-old", cpu=1, created="2025-12-31T00:00:00Z", priority=1)
    toy.pods("b-new", cpu=1, priority=1)
    toy.pods("a-new", cpu=1, priority=1)
    toy.pods("high", cpu=1, priority=9)
    toy.settle()
    order = []
    for _ in range(4):
        toy.finish(*toy.bound())
        toy.delete(*(toy.pod(name).key for name in toy.bound()))
        toy.settle()
        order += toy.bound()
    assert order == ["high", "z-old", "a-new", "b-new"]


def test_in_a_queue_that_is_served_by_age_priority_moves_nobody_forward(new_toy: Any) -> None:
    toy = new_toy(core=SchedulerCore(fifo=True, preemption=False))
    toy.node("n", cpu=2)
    toy.pods("low", cpu=1, created="2025-12-31T00:00:00Z", priority=1)
    toy.pods("middle", cpu=1, created="2025-12-31T00:00:01Z", priority=5)
    toy.pods("high", cpu=1, priority=9)
    toy.settle()
    assert toy.bound() == ["low", "middle"]


def test_who_is_served_by_age_still_takes_the_room_of_lower_priority(new_toy: Any) -> None:
    toy = new_toy(core=SchedulerCore(fifo=True))
    toy.node("n", cpu=1)
    toy.pods("low", cpu=1, priority=1, node="n")
    toy.pods("high", cpu=1, priority=9, created="2026-01-02T00:00:00Z")
    toy.settle()
    assert toy.bound() == ["high"]


def test_a_job_that_does_not_fit_lets_the_next_one_pass(toy: Any) -> None:
    toy.node("n", cpu=2)
    toy.pods("big", cpu=3, priority=5)
    toy.pods("small", cpu=1)
    toy.settle()
    assert toy.bound() == ["small"]


def test_nobody_passes_the_head_of_a_strict_queue(toy: Any) -> None:
    toy.queues = {"default": {"strict_fifo": True}, "other": {}}
    toy.node("n", cpu=4)
    toy.pods("busy", cpu=2, node="n")
    toy.pods("big", cpu=3, created="2025-12-31T00:00:00Z")
    toy.settle()
    toy.pods("small", cpu=1)
    toy.pods("elsewhere", queue="other", cpu=1)
    toy.settle()
    assert toy.bound() == ["busy", "elsewhere"]
    assert "big is before small" in toy.message("small")
    toy.delete(toy.pod("busy").key, toy.pod("elsewhere").key)
    toy.settle()
    assert toy.bound() == ["big", "small"]


def test_what_can_never_start_does_not_hold_up_a_strict_queue(toy: Any) -> None:
    toy.queues = {"default": {"strict_fifo": True}}
    toy.node("n", cpu=4)
    toy.pods("a-vast", cpu=9)
    toy.pods("small", cpu=1)
    toy.settle()
    assert toy.bound() == ["small"]
    assert "can never start" in toy.message("a-vast")


def test_what_is_guaranteed_to_others_is_not_taken(toy: Any) -> None:
    toy.queues = {"root": {}, "dept": {"parent": "root"}}
    toy.queues |= {"qa": {"guarantee": {"cpu": 1}, "parent": "dept"}, "qb": {"parent": "root"}}
    toy.node("n", cpu=4)
    toy.pods("b", 4, queue="qb", cpu=1)
    toy.settle()
    assert len(toy.bound()) == 3
    assert "guaranteed to other queues" in toy.message("b-3")
    toy.pods("a", queue="qa", cpu=1)
    toy.settle()
    assert toy.where("a") == "n"


def test_a_guarantee_larger_than_the_cluster_stops_only_those_who_need_that_resource(toy: Any) -> None:
    toy.queues = {"vast": {"guarantee": {"cpu": 12}}, "plain": {}}
    toy.node("n", cpu=10, memory="10Gi")
    toy.pods("v-0", queue="vast", cpu=3)
    toy.pods("p-0", queue="plain", memory="1Gi")
    toy.pods("p-1", queue="plain", cpu=1)
    toy.settle()
    assert toy.bound() == ["p-0", "v-0"]


def test_no_more_is_kept_for_guarantees_than_the_capability_above_them_lets_be_used(toy: Any) -> None:
    """Two teams are promised three each in a department that may have four; of those it uses one, three are kept."""
    team = {"parent": "dept", "guarantee": {"cpu": 3}}
    toy.queues = {"dept": {"capability": {"cpu": 4}}, "a": team, "b": team, "other": {}}
    toy.node("n", cpu=8)
    toy.pods("a", queue="a", cpu=1)
    toy.pods("p", 8, queue="other", cpu=1)
    toy.settle()
    assert len(toy.bound("p")) == 4
    assert "3 is guaranteed to other queues" in toy.message("p-7")


def test_nothing_new_starts_in_a_closed_queue(toy: Any) -> None:
    toy.queues = {"q": {"open": False}}
    toy.node("n", cpu=4)
    toy.group("g", 1, queue="q")
    toy.pods("g-0", group="g", cpu=1)
    toy.pods("lost", queue="nowhere", cpu=1)
    toy.settle()
    assert toy.bound() == []
    assert "queue q is closed" in toy.message("g-0")
    assert toy.message("lost") == "queue nowhere does not exist"
    toy.queues = {"q": {}, "nowhere": {}}
    toy.entitle()
    toy.settle()
    assert toy.bound() == ["g-0", "lost"]


def test_the_usage_of_a_group_moves_with_it_to_another_queue(toy: Any) -> None:
    toy.queues = {"a": {"capability": {"cpu": 2}}, "b": {"capability": {"cpu": 2}}}
    toy.node("n", cpu=8)
    toy.group("g", 1, queue="a")
    toy.pods("g-0", group="g", cpu=2)
    toy.settle()
    toy.pods("next", queue="a", cpu=2)
    toy.settle()
    assert toy.where("next") == ""
    toy.group("g", 1, queue="b")
    toy.settle()
    assert toy.where("next") == "n"


def test_a_hopeless_job_holds_nothing_of_its_queue(toy: Any) -> None:
    toy.queues = {"q": {"capability": {"cpu": 20}}}
    for number in range(3):
        toy.node(f"n-{number}", cpu=8)
    toy.group("j", 1, queue="q")
    toy.pods("j-0", group="j", cpu=9)
    toy.pods("ok", 5, queue="q", cpu=4)
    toy.settle()
    assert len(toy.bound("ok")) == 5
    assert "larger than every node in cpu (needs 9, the largest node n-0 has 8)" in toy.message("j-0")
    assert toy.explain("PodGroup", "j")["rule"] == "NeverFits"


def test_the_queue_of_a_bare_pod_may_come_from_its_namespace(toy: Any) -> None:
    annotations = {"scheduling.volcano.sh/queue-name": "team"}
    toy.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "annotations": annotations}})
    toy.queues = {"team": {"capability": {"cpu": 1}}, "default": {}}
    toy.node("n", cpu=4)
    toy.pods("p", 2, cpu=1)
    toy.settle()
    assert toy.bound() == ["p-0"]
    assert "queue team" in toy.message("p-1")


def test_pods_that_cannot_be_taken_back_fit_only_into_the_minimum_of_their_quota(toy: Any) -> None:
    """They count in the quota as a whole, too; a pod larger than what the quota may have just now can start later."""
    toy.queues = {"quota/a": {"capability": {"cpu": 50}, "maximum": {"cpu": 90_000}, "fixed": {"cpu": 20_000}}}
    toy.node("n", cpu=100)
    quota = "quota.scheduling.koordinator.sh/"
    labels = {quota + "name": "a"}
    toy.pods("fixed", 3, cpu=10, labels={**labels, quota + "preemptible": "false"})
    toy.pods("loose", 4, cpu=10, labels=labels)
    toy.pods("large", cpu=60, labels=labels)
    toy.settle()
    assert toy.bound() == ["fixed-0", "fixed-1", "loose-0", "loose-1", "loose-2"]
    assert toy.message("fixed-2") == "quota a/fixed: cpu capability 20, used 20, pod fixed-2 needs 10"
    assert toy.message("large").endswith("pod large needs 60")


def namespace_quota(**annotations: str) -> dict[str, Any]:
    """An elastic quota of another namespace than ``default``."""
    marks = {"quota.scheduling.koordinator.sh/" + name: text for name, text in annotations.items()}
    metadata = {"name": "team", "namespace": "elsewhere", "annotations": marks}
    return {"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota", "metadata": metadata, "spec": {}}


def test_a_namespace_that_belongs_to_a_queue_takes_its_pods_along(toy: Any) -> None:
    toy.queues = {"default": {}, "quota/team": {"capability": {"cpu": 2}}}
    toy.node("n", cpu=8)
    toy.put(namespace_quota(namespaces='["default"]'))
    toy.pods("p", 3, cpu=1)
    toy.settle()
    assert toy.bound() == ["p-0", "p-1"]
    toy.put(namespace_quota(namespaces="spoilt"))
    toy.settle()
    assert toy.bound() == ["p-0", "p-1", "p-2"]


def test_pods_that_come_with_the_quota_of_their_namespace_wait_until_it_was_heard_of(toy: Any) -> None:
    """What they may use is told only after the quota and they are there; until then they do not slip past it."""
    toy.queues = {"default": {}}
    toy.node("n", cpu=8)
    toy.settle()
    toy.put(namespace_quota(namespaces='["default"]'))
    toy.pods("p", 3, cpu=1)
    toy.settle()
    assert toy.bound() == []
    assert toy.message("p-0") == "quota team does not exist"
    toy.queues["quota/team"] = {"capability": {"cpu": 2}}
    toy.entitle()
    toy.settle()
    assert toy.bound() == ["p-0", "p-1"]
