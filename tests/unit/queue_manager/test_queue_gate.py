"""Which groups are let in to compete, and what the others are told."""

from typing import Any


def names(decisions: list[Any]) -> list[tuple[str, str]]:
    return [
        (decision.name, decision.subject.name) for decision in decisions if decision.subject.kind.startswith("PodGroup")
    ]


def test_a_group_in_an_open_leaf_is_let_in(cluster: Any) -> None:
    """There is no cluster-wide gate: whether there is room is not asked here."""
    cluster.group("g", minMember=3, minResources={"cpu": 64})
    assert names(cluster.settle()) == [("GroupAdmitted", "g")]
    assert cluster.group_status("g") == {"phase": "Inqueue"}


def test_deciding_twice_changes_nothing(cluster: Any) -> None:
    cluster.group("g", minMember=1)
    cluster.group("h", minMember=1, queue="ghost")
    cluster.settle()
    assert cluster.settle() == []


def test_a_group_of_a_missing_queue_is_told_and_starts_once_it_exists(cluster: Any) -> None:
    cluster.group("g", minMember=1, queue="ghost")
    cluster.settle()
    assert cluster.group_status("g")["phase"] == "Pending"
    assert "ghost does not exist" in cluster.told("g")
    cluster.queue("ghost")
    cluster.settle()
    assert cluster.group_status("g")["phase"] == "Inqueue"
    assert cluster.told("g") == ""


def test_a_group_of_a_queue_with_children_is_held(cluster: Any) -> None:
    cluster.queue("dept")
    cluster.queue("team", parent="dept")
    cluster.group("g", minMember=1, queue="dept")
    cluster.group("r", minMember=1, queue="root")
    cluster.settle()
    assert "no leaf" in cluster.told("g") and "team" in cluster.told("g")
    assert "no leaf" in cluster.told("r")


def test_a_group_larger_than_an_ancestors_capability_is_told_at_once_that_it_never_fits(cluster: Any) -> None:
    """The message names the queue that is too small, the resource, need and have."""
    cluster.queue("dept", capability={"cpu": 4})
    cluster.queue("team", parent="dept")
    cluster.group("g", minMember=1, queue="team", minResources={"cpu": "4500m"})
    [decision] = [decision for decision in cluster.settle() if decision.name == "GroupHeld"]
    assert decision.reason == "NeverFits"
    assert decision.message == "can never fit: its minimum needs cpu 4500m, queue dept may have at most 4"


def test_a_group_that_can_never_fit_weighs_nothing_in_the_shares(cluster: Any) -> None:
    cluster.node(cpu=10)
    cluster.queue("a", capability={"cpu": 4})
    cluster.group("huge", minMember=1, queue="a", minResources={"cpu": 9})
    cluster.pod("huge-0", {"cpu": 9}, group="huge")
    cluster.pod("b-0", {"cpu": 10})
    cluster.settle()
    assert cluster.deserved("a") == {}
    assert cluster.deserved("default") == {"cpu": 10_000}


def test_without_min_resources_the_smallest_members_count(cluster: Any) -> None:
    """Two of three needed pods of 3 are 6, more than 4; the third is larger still."""
    cluster.queue("q", capability={"cpu": 4})
    for number, cpu in enumerate((3, 3, 9)):
        cluster.pod(f"g-{number}", {"cpu": cpu}, group="g")
    cluster.group("g", minMember=2, queue="q")
    cluster.settle()
    assert "needs cpu 6" in cluster.told("g")


def test_sums_beyond_63_bits_do_not_slip_through(cluster: Any) -> None:
    """Twice the largest number is not minus two."""
    cluster.queue("q", capability={"example.com/gpu": 4})
    for number in range(2):
        cluster.pod(f"g-{number}", {"example.com/gpu": "9223372036854775807"}, group="g")
    cluster.group("g", minMember=2, queue="q")
    cluster.settle()
    assert "example.com/gpu" in cluster.told("g")


def test_a_quota_holds_what_is_more_than_it_allows_and_lets_in_once_it_is_raised(cluster: Any) -> None:
    cluster.quota("rq", hard={"requests.cpu": 5})
    cluster.group("g", minMember=3, minResources={"cpu": 6})
    cluster.group("other", "shop", minMember=3, minResources={"cpu": 6})
    cluster.settle()
    assert cluster.told("g") == "quota rq of namespace default: needs requests.cpu 6, has 5 (0 of 5 used)"
    assert cluster.group_status("other", "shop")["phase"] == "Inqueue"
    cluster.quota("rq", hard={"requests.cpu": 6})
    cluster.settle()
    assert cluster.group_status("g")["phase"] == "Inqueue"


def test_groups_that_were_let_in_use_the_quota_before_their_pods_exist(cluster: Any) -> None:
    """The older group goes in; the younger one does not pass through the same hole, and does once the other is gone."""
    cluster.quota("rq", hard={"cpu": 5, "pods": 10})
    cluster.group("b", minMember=1, minResources={"cpu": 3})
    cluster.now += 1000
    cluster.group("a", minMember=1, minResources={"cpu": 3})
    cluster.settle()
    assert cluster.group_status("b")["phase"] == "Inqueue"
    assert "3 of 5 used" in cluster.told("a")
    cluster.remove("PodGroup.scheduling.volcano.sh", "b")
    cluster.settle()
    assert cluster.group_status("a")["phase"] == "Inqueue"


def test_bare_pods_use_the_quota_until_they_have_finished(cluster: Any) -> None:
    cluster.quota("rq", hard={"cpu": 5})
    cluster.pod("busy", {"cpu": 4})
    cluster.group("g", minMember=1, minResources={"cpu": 2})
    cluster.settle()
    assert "4 of 5 used" in cluster.told("g")
    cluster.phase("busy", "Succeeded")
    cluster.settle()
    assert cluster.group_status("g")["phase"] == "Inqueue"


def test_a_quota_of_numbers_and_one_with_scopes(cluster: Any) -> None:
    """The number of pods is the group's minMember; a quota for pods without requests is not about these."""
    cluster.quota("few", hard={"count/pods": 2})
    cluster.quota("scoped", hard={"cpu": 0}, scopes=["BestEffort"])
    cluster.group("g", minMember=3, minResources={"cpu": 1})
    cluster.group("h", minMember=2, minResources={"cpu": 1})
    cluster.settle()
    assert "count/pods 3, has" in cluster.told("g")
    assert cluster.group_status("h")["phase"] == "Inqueue"


def test_a_quota_for_a_priority_class_is_about_groups_and_pods_of_that_class(cluster: Any) -> None:
    """What others use does not count in it, and they are let in whatever it says."""
    scope = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
    cluster.quota("vip", hard={"cpu": 4}, scopeSelector={"matchExpressions": [scope]})
    cluster.pod("other", {"cpu": 8})
    cluster.pod("mine", {"cpu": 1}, priorityClassName="high")
    cluster.group("small", minMember=1, minResources={"cpu": 2}, priorityClassName="high")
    cluster.group("plain", minMember=1, minResources={"cpu": 16})
    cluster.settle()
    assert cluster.group_status("small")["phase"] == cluster.group_status("plain")["phase"] == "Inqueue"
    cluster.group("large", minMember=2)
    for number in range(2):
        cluster.pod(f"large-{number}", {"cpu": 1}, group="large", priorityClassName="high")
    cluster.settle()
    assert cluster.told("large") == "quota vip of namespace default: needs cpu 2, has 1 (3 of 4 used)"
    cluster.phase("mine", "Succeeded")
    cluster.settle()
    assert cluster.group_status("large")["phase"] == "Inqueue"


def test_a_quota_for_pods_that_end_is_about_those_of_groups_that_do(cluster: Any) -> None:
    cluster.quota("short", hard={"pods": 2}, scopes=["Terminating"])
    cluster.group("g", minMember=3)
    cluster.group("h", minMember=3)
    for number in range(3):
        cluster.pod(f"g-{number}", {"cpu": 1}, group="g", activeDeadlineSeconds=60)
        cluster.pod(f"h-{number}", {"cpu": 1}, group="h")
    cluster.settle()
    assert cluster.told("g") == "quota short of namespace default: needs pods 3, has 2 (0 of 2 used)"
    assert cluster.group_status("h")["phase"] == "Inqueue"


def test_the_overcommit_gate_lets_in_total_times_factor(cluster_of: Any) -> None:
    """Ten by 1.2 are twelve: eight used and four let in leave nothing, until the eight are free again."""
    from queue_manager.domain import QueuePolicy

    cluster = cluster_of(QueuePolicy(overcommit="1.2"))
    cluster.node(cpu=10)
    cluster.group("a", minMember=1, minResources={"cpu": 8})
    cluster.pod("a-0", {"cpu": 8}, group="a")
    cluster.settle()
    cluster.bind("a-0")
    cluster.group("b", minMember=1, minResources={"cpu": 4})
    cluster.pod("b-0", {"cpu": 4}, group="b")
    cluster.settle()
    cluster.group("c", minMember=1, minResources={"cpu": 1})
    cluster.pod("c-0", {"cpu": 1}, group="c")
    cluster.settle()
    assert [cluster.group_status(name)["phase"] for name in "abc"] == ["Inqueue", "Inqueue", "Pending"]
    assert "has room for cpu 0 of 12" in cluster.told("c")
    cluster.phase("a-0", "Succeeded")
    cluster.status(cluster.read("PodGroup.scheduling.volcano.sh", "a").key, {"phase": "Completed"})
    cluster.settle()
    assert cluster.group_status("c")["phase"] == "Inqueue"


def test_with_fifo_the_older_group_comes_to_the_gate_first(cluster_of: Any) -> None:
    """The quota is enough for one of them; the priority of the other moves it nowhere."""
    from queue_manager.domain import QueuePolicy

    cluster = cluster_of(QueuePolicy(fifo=True))
    cluster.put(
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 100}
    )
    cluster.quota("rq", hard={"cpu": 5})
    cluster.group("a", minMember=1, minResources={"cpu": 3})
    cluster.group("z", minMember=1, minResources={"cpu": 3}, priorityClassName="high")
    cluster.settle()
    assert [cluster.group_status(name)["phase"] for name in "az"] == ["Inqueue", "Pending"]


def test_the_more_important_group_comes_to_the_gate_first(cluster: Any) -> None:
    """Both would fit the quota alone; priority goes before age."""
    cluster.put(
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 100}
    )
    cluster.quota("rq", hard={"cpu": 5})
    cluster.group("a", minMember=1, minResources={"cpu": 3})
    cluster.group("z", minMember=1, minResources={"cpu": 3}, priorityClassName="high")
    cluster.settle()
    assert [cluster.group_status(name)["phase"] for name in "az"] == ["Pending", "Inqueue"]


def test_a_refused_admission_is_decided_again(cluster: Any) -> None:
    """The gateway found the group changed; the core starts from what it sees then."""
    from kube import Outcome

    cluster.group("g", minMember=1)
    [decision] = [found for found in cluster.core.decide(cluster.now, set()) if found.name == "GroupAdmitted"]
    cluster.core.assume("d", decision)
    assert not [
        found for found in cluster.core.decide(cluster.now, {decision.subject}) if found.name == "GroupAdmitted"
    ]
    cluster.core.settle(Outcome("d", decision.name, decision.subject, False, {"": "stale"}))
    assert ("GroupAdmitted", "g") in names(cluster.settle())


def test_after_a_restart_nobody_is_told_twice(cluster: Any) -> None:
    cluster.group("g", minMember=1)
    cluster.group("h", minMember=1, queue="ghost")
    cluster.settle()
    cluster.restart()
    assert {decision.name for decision in cluster.settle()} == {"EntitlementsComputed"}


def test_moving_numbers_are_told_again_after_ten_seconds_only(cluster: Any) -> None:
    """A thousand waiting groups are not rewritten with every pod that comes or goes."""
    cluster.quota("rq", hard={"cpu": 5})
    cluster.pod("p-0", {"cpu": 3})
    cluster.group("g", minMember=1, minResources={"cpu": 3})
    cluster.settle()
    cluster.pod("p-1", {"cpu": 1})
    assert names(cluster.settle()) == []
    cluster.now += 10_000
    cluster.phase("p-0", "Running")
    cluster.pod("p-2", {"cpu": "500m"})
    assert names(cluster.settle()) == [("GroupHeld", "g")]
    assert "4500m of 5 used" in cluster.told("g")
