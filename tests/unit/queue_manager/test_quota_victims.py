"""Taking quota back: whose, for whom, and that it is kept until they are gone."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube import Key, Outcome
from queue_manager.domain import QueuePolicy
from queue_manager.domain.cohorts.cohort_tree import grow

KUEUE = "kueue.x-k8s.io/v1beta2"
RECLAIM = {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}


def put_queue(cluster: Any, name: str, cpu: int, cohort: str = "", **spec: Any) -> None:
    flavors = [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": cpu}]}]
    groups = [{"coveredResources": ["cpu"], "flavors": flavors}]
    content = {"namespaceSelector": {}, "resourceGroups": groups, "cohortName": cohort, **spec}
    cluster.put({"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "f"}})
    cluster.put({"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": content})
    metadata = {"name": name, "namespace": "default"}
    cluster.put({"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": name}})


def put_pod(cluster: Any, name: str, cpu: int, at: str, priority: int = 0) -> None:
    spec = {"priority": priority, "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}
    metadata = {"name": name, "namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": at}}
    cluster.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def run(cluster: Any, *names: str) -> None:
    """They are given quota and start."""
    cluster.settle()
    for name in names:
        assert "tidegate.dev/admission" in cluster.read("Pod", name).annotations, name
        cluster.bind(name)


def revoked(cluster: Any) -> dict[str, str]:
    """Who has to go, and why."""
    pods = [item for key, item in cluster.store.objects.items() if key.kind == "Pod"]
    texts = {
        pod.name: pod.annotations["tidegate.dev/revoked"] for pod in pods if "tidegate.dev/revoked" in pod.annotations
    }
    return {name: json.loads(text)["reason"] for name, text in texts.items()}


def holds(cluster: Any, name: str) -> bool:
    return "tidegate.dev/admission" in cluster.read("Pod", name).annotations


def test_the_room_of_victims_is_kept_for_whom_they_leave(cluster: Any) -> None:
    put_queue(cluster, "q", 4, preemption=RECLAIM)
    put_pod(cluster, "low", 4, "q", 0)
    run(cluster, "low")
    put_pod(cluster, "high", 3, "q", 5)
    cluster.settle()
    assert revoked(cluster) == {"low": "InClusterQueue"}
    assert not holds(cluster, "high")
    put_pod(cluster, "sly", 2, "q", 1)
    cluster.settle()
    assert not holds(cluster, "sly")
    cluster.remove("Pod", "low")
    cluster.settle()
    assert holds(cluster, "high")
    assert not holds(cluster, "sly")
    assert cluster.core.check() == []


def test_who_has_not_started_gives_its_quota_back_without_an_eviction(cluster: Any) -> None:
    put_queue(cluster, "q", 4, preemption=RECLAIM)
    put_pod(cluster, "low", 4, "q", 0)
    cluster.settle()
    put_pod(cluster, "high", 3, "q", 5)
    cluster.settle()
    assert revoked(cluster) == {}
    assert holds(cluster, "high")
    assert not holds(cluster, "low")


def test_when_the_one_they_leave_for_goes_the_quota_is_theirs_until_they_are_gone(cluster: Any) -> None:
    put_queue(cluster, "q", 4, preemption=RECLAIM)
    put_pod(cluster, "low", 4, "q", 0)
    run(cluster, "low")
    put_pod(cluster, "high", 3, "q", 5)
    cluster.settle()
    cluster.remove("Pod", "high")
    put_pod(cluster, "next", 1, "q", 0)
    cluster.settle()
    assert not holds(cluster, "next")
    cluster.remove("Pod", "low")
    cluster.settle()
    assert holds(cluster, "next")


def test_who_found_nobody_to_send_away_looks_again_when_others_borrow_more(cluster_of: Any) -> None:
    cluster = cluster_of(QueuePolicy(queueing="cohort", fair=True))
    for name in "ab":
        put_queue(cluster, name, 3, "team", preemption={"reclaimWithinCohort": "Any"})
    put_pod(cluster, "base", 3, "b")
    run(cluster, "base")
    put_pod(cluster, "wide", 4, "a")
    cluster.settle()
    assert revoked(cluster) == {}
    put_pod(cluster, "more", 2, "b")
    run(cluster, "more")
    assert revoked(cluster) == {"base": "InCohortReclamation"}
    cluster.restart()
    assert {decision.name for decision in cluster.settle()} <= {"EntitlementsComputed", "QuotaUseReported"}


def test_who_counts_on_the_room_of_another_s_victims_waits_for_them_too(cluster: Any) -> None:
    put_queue(cluster, "q", 8, preemption=RECLAIM)
    put_pod(cluster, "large", 4, "q")
    put_pod(cluster, "stays", 2, "q", 9)
    run(cluster, "large", "stays")
    put_pod(cluster, "small", 2, "q", 1)
    run(cluster)
    put_pod(cluster, "first", 3, "q", 5)
    put_pod(cluster, "second", 3, "q", 4)
    cluster.settle()
    assert revoked(cluster) == {"large": "InClusterQueue"}
    assert not holds(cluster, "small")
    assert not (holds(cluster, "first") and holds(cluster, "second"))
    assert_within_quota(cluster)
    cluster.remove("Pod", "large")
    cluster.settle()
    assert holds(cluster, "first")
    assert holds(cluster, "second")


def test_a_restart_between_eviction_and_admission_takes_nobody_else(cluster: Any) -> None:
    put_queue(cluster, "q", 4, preemption=RECLAIM)
    put_pod(cluster, "a", 2, "q", 0)
    put_pod(cluster, "b", 2, "q", 0)
    run(cluster, "a", "b")
    put_pod(cluster, "high", 2, "q", 5)
    cluster.settle()
    before = revoked(cluster)
    assert len(before) == 1
    cluster.restart()
    cluster.settle()
    assert revoked(cluster) == before
    cluster.remove("Pod", next(iter(before)))
    cluster.settle()
    assert holds(cluster, "high")


def test_a_refused_revocation_is_decided_again(cluster: Any) -> None:
    put_queue(cluster, "q", 4, preemption=RECLAIM)
    put_pod(cluster, "low", 4, "q", 0)
    run(cluster, "low")
    put_pod(cluster, "high", 3, "q", 5)
    decisions = cluster.core.decide(cluster.now, set())
    [first] = [decision for decision in decisions if decision.name == "WorkloadRevoked"]
    for decision in decisions:
        cluster.core.assume(decision.name, decision)
        cluster.core.settle(Outcome(decision.name, decision.name, decision.subject, False))
    cluster.settle()
    assert first.subject == Key("Pod", "default", "low")
    assert revoked(cluster) == {"low": "InClusterQueue"}


def test_lent_quota_comes_back_and_no_more_than_that(cluster: Any) -> None:
    put_queue(cluster, "mine", 4, "team", preemption=RECLAIM)
    put_queue(cluster, "guest", 2, "team")
    for number in range(6):
        put_pod(cluster, f"g{number}", 1, "guest", 9)
    run(cluster, *(f"g{number}" for number in range(6)))
    for number in range(6):
        put_pod(cluster, f"m{number}", 1, "mine")
    cluster.settle()
    assert len(revoked(cluster)) == 4
    assert set(revoked(cluster).values()) == {"InCohortReclamation"}


def test_a_revoked_group_waits_for_quota_again_once_its_pods_are_gone(cluster: Any) -> None:
    put_queue(cluster, "q", 4, preemption=RECLAIM)
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
    metadata = {"name": "g", "namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": "q"}}
    cluster.put({**group, "metadata": metadata, "spec": {"minMember": 2, "minResources": {"cpu": 4}}})
    cluster.settle()
    cluster.pod("g-0", {"cpu": 2}, group="g")
    cluster.pod("g-1", {"cpu": 2}, group="g")
    cluster.bind("g-0")
    cluster.bind("g-1")
    put_pod(cluster, "high", 3, "q", 5)
    cluster.settle()
    annotations = cluster.read("PodGroup.scheduling.volcano.sh", "g").annotations
    assert json.loads(annotations["tidegate.dev/revoked"])["reason"] == "InClusterQueue"
    cluster.remove("Pod", "g-0")
    cluster.settle()
    assert not holds(cluster, "high")
    cluster.remove("Pod", "g-1")
    cluster.settle()
    assert holds(cluster, "high")
    assert cluster.group_status("g")["phase"] == "Pending"
    assert "tidegate.dev/revoked" not in cluster.read("PodGroup.scheduling.volcano.sh", "g").annotations


POLICIES = st.fixed_dictionaries(
    {
        "withinClusterQueue": st.sampled_from(["Never", "LowerPriority", "LowerOrNewerEqualPriority"]),
        "reclaimWithinCohort": st.sampled_from(["Never", "LowerPriority", "Any"]),
    }
)
PODS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 4), st.integers(-1, 2)), min_size=1, max_size=9)


@settings(max_examples=60, deadline=None)
@given(st.tuples(*[st.integers(0, 5)] * 3), st.tuples(*[POLICIES] * 3), PODS, st.booleans(), st.data())
def test_whatever_comes_the_books_balance_and_things_come_to_rest(
    cluster_of: Any, quotas: Any, policies: Any, pods: Any, fair: bool, data: Any
) -> None:
    """Pods come, start, and go when they are told to. Nobody is over quota at any time; whoever others leave for has its
    quota once they are gone; and a restart finds nothing left to do."""
    cluster = cluster_of(QueuePolicy(queueing="cohort", fair=fair))
    for name, quota, policy in zip("abc", quotas, policies, strict=True):
        put_queue(cluster, name, quota, data.draw(st.sampled_from(["", "team"])), preemption=policy)
    for number, (name, cpu, priority) in enumerate(pods):
        put_pod(cluster, f"p{number}", cpu, name, priority)
        cluster.settle()
        assert_within_quota(cluster)
        for key in [key for key in cluster.store.objects if key.kind == "Pod"]:
            pod = cluster.store.objects[key]
            if holds(cluster, key.name) and not pod.spec.get("nodeName") and data.draw(st.booleans()):
                cluster.bind(key.name)
            elif key.name in revoked(cluster) and data.draw(st.booleans()):
                cluster.remove("Pod", key.name)
        cluster.settle()
    # Whoever is given the room of victims may let others see whom they are entitled to send away: wave after wave.
    while revoked(cluster):
        for name in list(revoked(cluster)):
            cluster.remove("Pod", name)
        cluster.settle()
        assert_within_quota(cluster)
    books = cluster.core._cohorts.books
    assert not books.promises
    usage = {name: dict(node.usage) for name, node in books.tree.queues.items()}
    cluster.restart()
    cluster.settle()
    again = {name: dict(node.usage) for name, node in cluster.core._cohorts.books.tree.queues.items()}
    assert _nonzero(again) == _nonzero(usage)


def assert_within_quota(cluster: Any) -> None:
    """Nobody uses more than there is, those who have to go included."""
    books = cluster.core._cohorts.books
    tree = grow(books.queues, books.cohorts)
    for admission in books.held.values():
        tree.queues[admission.cluster_queue].move(admission.usage, 1)
    for node in [*tree.queues.values(), *tree.cohorts.values()]:
        if node.parent is None:
            assert all(node.usage.get(place, 0) <= amount for place, amount in node.subtree.items())


def _nonzero(usage: dict[str, dict[Any, int]]) -> dict[str, dict[Any, int]]:
    return {name: {place: amount for place, amount in used.items() if amount} for name, used in usage.items()}


@pytest.mark.parametrize("fair", [False, True])
def test_the_last_to_get_quota_is_the_first_to_give_it_back(cluster_of: Any, fair: bool) -> None:
    """As in Kueue: not the youngest, but who has held its quota for the shortest time; a restart does not change that."""
    cluster = cluster_of(QueuePolicy(queueing="cohort", fair=fair))
    for name in "ab":
        put_queue(cluster, name, 2, "team", preemption={"reclaimWithinCohort": "Any"})
    put_pod(cluster, "first", 3, "b")
    run(cluster, "first")
    for name, amount in (("old", 3), ("young", 1)):
        cluster.now += 60_000
        put_pod(cluster, name, amount, "b")
        cluster.settle()
    assert holds(cluster, "young") and not holds(cluster, "old")
    cluster.bind("young")
    cluster.now += 60_000
    cluster.remove("Pod", "first")
    run(cluster, "old")
    cluster.restart()
    put_pod(cluster, "new", 1, "a")
    cluster.settle()
    assert set(revoked(cluster)) == {"old"}


def test_of_equals_the_first_by_name_goes(cluster_of: Any) -> None:
    """So it is in Kueue, whose example of four borrowers of one instant this is: one of each queue, and the smaller ones."""
    cluster = cluster_of(QueuePolicy(queueing="cohort", fair=True))
    for name in "abc":
        put_queue(cluster, name, 3, "team", preemption={"reclaimWithinCohort": "Any"})
    for name, amount in (("b1", 2), ("b2", "2500m"), ("c1", 2), ("c2", "2500m")):
        put_pod(cluster, name, amount, name[0])
        run(cluster, name)
    put_pod(cluster, "new", "3500m", "a")
    cluster.settle()
    assert set(revoked(cluster)) == {"b1", "c1"}


def test_the_search_for_a_flavor_ends_where_others_of_the_queue_make_way_within_its_own_quota(cluster: Any) -> None:
    """It need not borrow once ``low`` is gone, so that ``whenCanBorrow`` is no reason to try the next flavor."""
    for name in ("f", "g"):
        cluster.put({"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": {}})
    two = [{"name": name, "resources": [{"name": "cpu", "nominalQuota": 4}]} for name in ("f", "g")]
    groups = [{"coveredResources": ["cpu"], "flavors": two}]
    fungibility = {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "MayStopSearch"}
    within = {"withinClusterQueue": "LowerPriority"}
    put_queue(cluster, "other", 4, "team")
    put_queue(cluster, "q", 4, "team", resourceGroups=groups, preemption=within, flavorFungibility=fungibility)
    put_pod(cluster, "theirs", 4, "other")
    put_pod(cluster, "low", 4, "q")
    cluster.settle()
    run(cluster, "theirs", "low")
    put_pod(cluster, "high", 4, "q", priority=9)
    cluster.settle()
    assert revoked(cluster) == {"low": "InClusterQueue"}


def test_who_waits_for_others_to_go_takes_quota_that_comes_free_before(cluster: Any) -> None:
    """The others go all the same, and what they leave is anybody's."""
    put_queue(cluster, "q", 4, preemption=RECLAIM)
    put_pod(cluster, "low", 2, "q", 0)
    run(cluster, "low")
    put_pod(cluster, "mid", 2, "q", 5)
    run(cluster, "mid")
    put_pod(cluster, "high", 2, "q", 5)
    cluster.settle()
    assert set(revoked(cluster)) == {"low"} and not holds(cluster, "high")
    cluster.remove("Pod", "mid")
    cluster.settle()
    assert holds(cluster, "high")
    put_pod(cluster, "next", 2, "q", 0)
    cluster.settle()
    assert not holds(cluster, "next")
    cluster.remove("Pod", "low")
    cluster.settle()
    assert holds(cluster, "next")
