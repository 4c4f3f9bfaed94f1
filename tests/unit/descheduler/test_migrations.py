"""One migration after the other: who may go, who waits and why, and what becomes of it."""

from typing import Any

import pytest

from kube import Object, Verb

MIGRATION = "PodMigrationJob.scheduling.koordinator.sh"
RESERVATION = "Reservation.scheduling.koordinator.sh"
MINUTE = 60_000
FREELY = {
    "maxMigratingPerNode": 0,
    "maxMigratingPerWorkload": "75%",
    "maxUnavailablePerWorkload": "75%",
    "objectLimiters": {"workload": {"duration": "0s"}},
}


def web(cluster: Any, count: int, node: str = "a", **more: Any) -> Object:
    """A workload of so many pods on one node."""
    owner: Object = cluster.workload("web", count)
    for number in range(count):
        cluster.pod(f"web-{number}", node, owner, **more)
    return owner


def status(cluster: Any, name: str = "move") -> dict[str, Any]:
    found: dict[str, Any] = cluster.get(MIGRATION, name).status
    return found


def cluster_of(make_cluster: Any, policy: dict[str, Any] | None = None) -> Any:
    cluster = make_cluster({"migration": policy} if policy else None)
    for name in ("a", "b"):
        cluster.node(name)
    return cluster


def test_a_pod_is_evicted_and_its_job_is_done_when_it_is_gone(make_cluster: Any) -> None:
    cluster = cluster_of(make_cluster)
    web(cluster, 3)
    cluster.job("web-1")
    names = [decision.name for decision in cluster.step()]
    assert names == ["MigrationStarted", "PodMigrated", "MigrationSucceeded"]
    assert cluster.evicted == ["web-1"] and status(cluster)["phase"] == "Succeeded"


def test_with_a_reservation_nobody_goes_before_it_stands(make_cluster: Any) -> None:
    cluster = cluster_of(make_cluster)
    web(cluster, 3)
    cluster.job("web-1", mode="ReservationFirst", ttl="5m")
    cluster.step()
    assert cluster.evicted == [] and status(cluster)["phase"] == "Running"
    found = cluster.get(RESERVATION, "move")
    cluster._store(
        found.changed(status={"conditions": [{"type": "Scheduled", "status": "False", "message": "no room"}]})
    )
    cluster.step(MINUTE)
    assert (status(cluster)["reason"], status(cluster)["message"]) == ("Unschedulable", "no room")
    cluster._store(found.changed(status={"phase": "Available", "nodeName": "b"}))
    cluster.step()
    assert cluster.evicted == ["web-1"]
    done = status(cluster)
    assert (done["phase"], done["nodeName"], done["podRef"]["name"]) == ("Succeeded", "b", "web-1x")


def test_a_reservation_asks_for_any_node_but_the_pods_own_and_for_pods_of_its_controller(make_cluster: Any) -> None:
    cluster = cluster_of(make_cluster)
    terms = [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}, {"matchExpressions": []}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    owner = web(cluster, 3, spec={"affinity": {"nodeAffinity": required}})
    cluster.job("web-1", mode="ReservationFirst")
    cluster.step()
    made = cluster.get(RESERVATION, "move")
    spec = made.spec["template"]["spec"]
    own = {"key": "metadata.name", "operator": "NotIn", "values": ["a"]}
    asked = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert "nodeName" not in spec and [term["matchFields"] for term in asked] == [[own], [own]]
    assert made.spec["owners"][0]["controller"]["uid"] == owner.uid
    assert made.metadata["ownerReferences"][0]["name"] == "move"


@pytest.mark.parametrize(
    ("phase", "node", "reason"),
    [
        ("Available", "a", "ForbiddenMigratePod"),
        ("Failed", "", "ReservationExpired"),
        ("Succeeded", "b", "MissingReservation"),
    ],
)
def test_a_migration_whose_place_is_none_is_given_up(make_cluster: Any, phase: str, node: str, reason: str) -> None:
    cluster = cluster_of(make_cluster)
    web(cluster, 3)
    cluster.job("web-1", mode="ReservationFirst")
    cluster.step()
    cluster._store(cluster.get(RESERVATION, "move").changed(status={"phase": phase, "nodeName": node}))
    cluster.step()
    assert (status(cluster)["phase"], status(cluster)["reason"]) == ("Failed", reason)
    assert cluster.evicted == [] and cluster.get(RESERVATION, "move") is None


def test_a_migration_that_takes_too_long_leaves_nothing_behind(make_cluster: Any) -> None:
    cluster = cluster_of(make_cluster)
    web(cluster, 3)
    cluster.job("web-1", mode="ReservationFirst", ttl="5m")
    cluster.step()
    assert cluster.core.deadline() == cluster.now + 5 * MINUTE
    cluster.step(5 * MINUTE)
    assert (status(cluster)["phase"], status(cluster)["reason"]) == ("Failed", "Timeout")
    assert cluster.get(RESERVATION, "move") is None
    cluster.step(61 * MINUTE)
    assert cluster.get(MIGRATION, "move") is None and cluster.core.deadline() is None


def test_another_pod_of_the_name_is_not_the_one_that_was_meant(make_cluster: Any) -> None:
    cluster = cluster_of(make_cluster)
    owner = web(cluster, 3)
    cluster.job("web-1", podRef={"namespace": "default", "name": "web-1", "uid": "another"})
    cluster.step()
    assert status(cluster)["reason"] == "MissingPod" and cluster.evicted == []
    assert owner.name == "web"


PROTECTED: list[tuple[dict[str, Any], str]] = [
    ({"metadata": {"annotations": {"scheduling.koordinator.sh/eviction-cost": "2147483647"}}}, "never evicted"),
    ({"metadata": {"annotations": {"volcano.sh/preemptable": "false"}}}, "preemptable is false"),
    ({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}}, "static pods"),
    ({"spec": {"priority": 2_000_000_000}}, "critical to the system"),
    ({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}, "would lose what it keeps"),
]


@pytest.mark.parametrize(("more", "why"), PROTECTED)
def test_who_is_protected_stays(make_cluster: Any, more: dict[str, Any], why: str) -> None:
    cluster = cluster_of(make_cluster)
    web(cluster, 3, **more)
    cluster.job("web-1")
    cluster.step()
    assert cluster.evicted == [] and status(cluster)["reason"] == "ForbiddenMigratePod"
    assert why in status(cluster)["message"]


@pytest.mark.parametrize(("more", "why"), [one for one in PROTECTED if "mirror" not in str(one)])
def test_a_pod_may_say_that_it_can_be_moved_all_the_same(make_cluster: Any, more: dict[str, Any], why: str) -> None:
    cluster = cluster_of(make_cluster)
    notes = {"descheduler.alpha.kubernetes.io/evict": "true"}
    metadata = more.get("metadata") or {}
    web(cluster, 3, **{**more, "metadata": {"annotations": {**(metadata.get("annotations") or {}), **notes}}})
    cluster.job("web-1")
    cluster.step()
    assert cluster.evicted == ["web-1"]


def test_a_pod_that_nobody_makes_again_stays_unless_it_is_said_otherwise(make_cluster: Any) -> None:
    for policy, evicted in ((None, []), ({"evictAllBarePods": True}, ["bare"])):
        cluster = cluster_of(make_cluster, policy)
        cluster.pod("bare", "a")
        cluster.job("bare")
        cluster.step()
        assert cluster.evicted == evicted


@pytest.mark.parametrize(("replicas", "at_once"), [(1, 0), (2, 1), (3, 1), (4, 2), (10, 2), (11, 1), (20, 2), (35, 2)])
def test_so_many_of_a_workload_move_at_one_time(make_cluster: Any, replicas: int, at_once: int) -> None:
    """And never more than two of one node. Ten per cent of 35 are three, but all are on one node."""
    cluster = cluster_of(make_cluster, {"objectLimiters": {"workload": {"duration": "0s"}}})
    web(cluster, replicas, cpu="100m")
    for number in range(min(replicas, 6)):
        cluster.job(f"web-{number}", f"move-{number}", mode="ReservationFirst")
    cluster.step()
    assert sum(status(cluster, f"move-{number}")["phase"] == "Running" for number in range(min(replicas, 6))) == at_once


def test_pods_that_are_down_count_against_those_that_move(make_cluster: Any) -> None:
    cluster = cluster_of(make_cluster)
    owner = web(cluster, 10)
    for name in ("web-0", "web-1"):
        cluster.pod(name, "a", owner, ready=False)
    cluster.job("web-5", ttl="30m")
    cluster.step()
    assert cluster.evicted == []
    assert "7 other pods of ReplicaSet default/web are available, and 8 of 10 have to be" in status(cluster)["message"]
    cluster.pod("web-0", "a", owner)
    cluster.step()
    assert cluster.evicted == ["web-5"]


def test_a_pod_that_is_down_itself_costs_its_workload_nothing(make_cluster: Any) -> None:
    cluster = cluster_of(make_cluster)
    owner = web(cluster, 10)
    for name in ("web-0", "web-1"):
        cluster.pod(name, "a", owner, ready=False)
    cluster.job("web-0")
    cluster.step()
    assert cluster.evicted == ["web-0"]


def test_one_of_a_workload_follows_another_after_a_while(make_cluster: Any) -> None:
    """Of four two may go in five minutes, so one each two and a half."""
    cluster = cluster_of(make_cluster)
    owner = web(cluster, 4)
    for number in range(3):
        cluster.job(f"web-{number}", f"move-{number}", ttl="30m")
    cluster.step()
    assert cluster.evicted == ["web-0"]
    cluster.pod("web-4", "b", owner)
    assert cluster.core.deadline() == cluster.now + 150_000
    cluster.step(149_000)
    assert cluster.evicted == ["web-0"]
    cluster.step(1_000)
    assert cluster.evicted == ["web-0", "web-1"]


def test_a_budget_is_kept_also_by_those_who_go_at_one_moment(make_cluster: Any) -> None:
    cluster = cluster_of(make_cluster, {"objectLimiters": {"workload": {"duration": "0s"}}})
    web(cluster, 10)
    cluster.budget("web", 9)
    for number in range(2):
        cluster.job(f"web-{number}", f"move-{number}")
    cluster.step()
    assert cluster.evicted == ["web-0"]
    assert "budget default/web allows no disruption: 9 of its pods are healthy" in status(cluster, "move-1")["message"]


def test_a_budget_whose_status_allows_less_than_its_pods_is_kept(make_cluster: Any) -> None:
    """It knows of one more that is about to go."""
    cluster = cluster_of(make_cluster, {"objectLimiters": {"workload": {"duration": "0s"}}})
    web(cluster, 10)
    budget = cluster.budget("web", 7)
    cluster._store(budget.changed(status={**budget.status, "disruptionsAllowed": 1}))
    jobs = [cluster.job(f"web-{number}", f"move-{number}") for number in range(2)]
    started = [
        decision for decision in cluster.core.decide(cluster.now, frozenset()) if decision.name == "MigrationStarted"
    ]
    assert [decision.subject for decision in started] == [jobs[0].key]


def test_the_least_important_goes_first(make_cluster: Any) -> None:
    cluster = cluster_of(make_cluster, {"maxMigratingPerNode": 1})
    for name, priority in (("high", 9500), ("low", 5500), ("middle", 7500)):
        owner = cluster.workload(name, 3)
        for number in range(3):
            cluster.pod(f"{name}-{number}", "a", owner, spec={"priority": priority}, cpu="100m")
        cluster.job(f"{name}-0", f"move-{name}", mode="ReservationFirst")
    cluster.step()
    assert {one: status(cluster, f"move-{one}")["phase"] for one in ("high", "low", "middle")} == {
        "high": "Pending",
        "low": "Running",
        "middle": "Pending",
    }


@pytest.mark.parametrize(("label", "verb"), [("Eviction", "EVICT"), ("Delete", "DELETE"), ("SoftEviction", "PATCH")])
def test_a_pod_says_how_it_is_taken_away(make_cluster: Any, label: str, verb: str) -> None:
    cluster = cluster_of(make_cluster)
    web(cluster, 3, metadata={"labels": {"koordinator.sh/evict-policy": label}})
    cluster.job("web-1", deleteOptions={"gracePeriodSeconds": 7})
    decided = [decision for decision in cluster.step() if decision.name == "PodMigrated"]
    (mutation,) = [one for one in decided[0].mutations if one.key.kind == "Pod"]
    assert mutation.verb.name == verb and mutation.grace_seconds == (None if verb == "PATCH" else 7)


def test_a_successor_goes_on_where_a_migration_was(make_cluster: Any) -> None:
    """A core from the facts alone decides, at each moment, what the one before would have."""
    cluster = cluster_of(make_cluster)
    web(cluster, 4)
    cluster.job("web-1", mode="ReservationFirst")
    for _ in range(8):
        expected = cluster.core.decide(cluster.now, frozenset())
        assert cluster.new_core().decide(cluster.now, frozenset()) == expected
        for decision in expected:
            for mutation in decision.mutations:
                cluster._apply(mutation)
        found = cluster.get(RESERVATION, "move")
        if found is not None and not found.status:
            cluster._store(found.changed(status={"phase": "Available", "nodeName": "b"}))
    assert cluster.evicted == ["web-1"] and status(cluster)["phase"] == "Succeeded"


def test_what_is_on_its_way_is_not_decided_again(make_cluster: Any) -> None:
    cluster = cluster_of(make_cluster)
    web(cluster, 4)
    job = cluster.job("web-1")
    assert cluster.core.decide(cluster.now, frozenset([job.key])) == []
    (started,) = cluster.core.decide(cluster.now, frozenset())
    cluster.core.assume("d/x", started)
    cluster.job("web-2", "second")
    (held,) = cluster.core.decide(cluster.now, frozenset([job.key]))
    assert held.name == "MigrationHeld" and "the next pod of this workload may move at" in held.message


def test_with_node_fit_nobody_is_evicted_who_has_no_other_place(make_cluster: Any) -> None:
    for cpu, evicted in (("1", ["web-1"]), ("11", [])):
        cluster = cluster_of(make_cluster, {"nodeFit": True})
        web(cluster, 3, cpu=cpu)
        cluster.job("web-1")
        cluster.step()
        assert cluster.evicted == evicted
    assert "no other node would take it" in status(cluster)["message"]


@pytest.mark.parametrize(
    ("policy", "gate", "why"),
    [
        ({"namespaces": {"exclude": ["default"]}}, "Namespaces", "namespace default is not among"),
        ({"labelSelector": {"matchLabels": {"app": "x"}}}, "LabelSelector", "no selector takes its labels"),
        ({"priorityThreshold": {"value": 100}}, "PriorityThreshold", "its priority 200 is not below 100"),
        ({"maxMigratingGlobally": 0, "namespaces": {"include": ["x"]}}, "Namespaces", "namespace default is not among"),
    ],
)
def test_a_gate_that_is_skipped_is_open(make_cluster: Any, policy: dict[str, Any], gate: str, why: str) -> None:
    for skipped in ([], [gate]):
        cluster = cluster_of(make_cluster, {**policy, "skipEvictionGates": skipped})
        web(cluster, 3, spec={"priority": 200})
        cluster.job("web-1")
        cluster.step()
        assert (cluster.evicted == ["web-1"]) == bool(skipped)
        assert skipped or why in status(cluster)["message"]


@pytest.mark.parametrize(
    "policy",
    [
        {"lowThreshold": {}},
        {"lowThresholds": {"cpu": 101}, "highThresholds": {"cpu": 101}},
        {"lowThresholds": {"cpu": 60}, "highThresholds": {"cpu": 50}},
        {"strategies": {"RemoveEverything": {}}},
        {"strategies": {"PodLifeTime": {"maxAge": 1}}},
        {"migration": {"defaultJobMode": "Now"}},
        {"migration": {"skipEvictionGates": ["All"]}},
        {"intervalSeconds": 0},
        {"nodePools": [{"lowThreshold": {}}]},
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(make_cluster: Any, policy: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        make_cluster(policy)


def test_while_scheduling_is_paused_everything_stays(make_cluster: Any) -> None:
    cluster = cluster_of(make_cluster)
    web(cluster, 3)
    switch = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "scheduling", "namespace": "tidegate-system"},
    }
    cluster.put({**switch, "data": {"paused": "true"}})
    cluster.job("web-1", ttl="5m")
    assert cluster.step(4 * MINUTE) == [] and cluster.core.deadline() is None
    cluster.put({**switch, "data": {"paused": "false"}})
    cluster.step()
    assert cluster.evicted == ["web-1"]


def test_evictions_keep_to_their_rate(make_cluster: Any) -> None:
    """Two at once, and one more every four seconds."""
    cluster = make_cluster({"migration": {**FREELY, "evictQPS": "0.25", "evictBurst": 2}})
    for node in ("a", "b"):
        cluster.node(node)
    owner = cluster.workload("w", 8)
    for number in range(8):
        cluster.pod(f"w-{number}", "a", owner)
        cluster.job(f"w-{number}", f"move-{number}")
    cluster.step()
    assert len(cluster.evicted) == 2 and cluster.core.deadline() == cluster.now + 4000
    for count in (3, 4, 5):
        cluster.step(4000)
        assert len(cluster.evicted) == count


@pytest.mark.parametrize(
    ("args", "phase"),
    [
        ({}, "Succeeded"),
        ({"dryRun": True}, "Pending"),
        ({"minPodAge": "1h"}, "Pending"),
        ({"minReplicas": 5}, "Failed"),
        ({"nodeSelector": "zone=b"}, "Failed"),
        ({"nodeSelector": "zone=a"}, "Succeeded"),
    ],
)
def test_arguments_choose_who_may_go(make_cluster: Any, args: Any, phase: str) -> None:
    cluster = make_cluster({"migration": {**FREELY, **args}})
    cluster.node("a", zone="a")
    owner = cluster.workload("w", 4)
    for number in range(4):
        cluster.pod(f"w-{number}", "a", owner)
    cluster.job("w-0", "move")
    cluster.step()
    assert cluster.get(MIGRATION, "move").status["phase"] == phase
    cluster.step(3_600_000)
    assert bool(cluster.evicted) == (phase == "Succeeded")


def test_a_young_pod_goes_once_it_is_old_enough(make_cluster: Any) -> None:
    cluster = make_cluster(
        {"migration": {**FREELY, "minPodAge": "2m", "defaultDeleteOptions": {"gracePeriodSeconds": 7}}}
    )
    cluster.node("a")
    owner = cluster.workload("w", 4)
    for number in range(4):
        cluster.pod(f"w-{number}", "a", owner)
    cluster.job("w-0", "move")
    cluster.step()
    assert cluster.core.deadline() == cluster.now + 120_000 and not cluster.evicted
    made = cluster.step(120_000)
    assert [mutation.grace_seconds for one in made for mutation in one.mutations if mutation.verb is Verb.EVICT] == [7]


def test_a_place_stays_for_who_has_left_though_his_job_is_out_of_time(make_cluster: Any) -> None:
    """The pod goes later than its job lasts: whoever comes in its stead finds the place, which the reservation's own time ends."""
    cluster = cluster_of(make_cluster)
    web(cluster, 3, metadata={"labels": {"koordinator.sh/evict-policy": "SoftEviction"}})
    cluster.job("web-1", mode="ReservationFirst", ttl="2m")
    cluster.step()
    stands = cluster.get(RESERVATION, "move")
    cluster._store(stands.changed(status={"phase": "Available", "nodeName": "b"}))
    cluster.step()
    cluster.step(2 * MINUTE)
    assert status(cluster)["phase"] == "Failed" and status(cluster)["reason"] == "Timeout"
    assert cluster.get(RESERVATION, "move").spec["ttl"] == "750s"
