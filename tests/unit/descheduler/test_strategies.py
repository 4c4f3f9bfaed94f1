"""Pods that should not be where they are: who is found, who is left, and what the arguments choose."""

from typing import Any

import pytest

from kube import Manifest, merge, rfc3339

MINUTE = 60_000
GENTLE: Manifest = {
    "maxMigratingPerNode": 0,
    "maxMigratingPerWorkload": "75%",
    "maxUnavailablePerWorkload": "75%",
    "objectLimiters": {"workload": {"duration": "0s"}},
}


def cluster_with(make_cluster: Any, name: str, args: Manifest | None = None, count: int = 4, **more: Any) -> Any:
    """Pods of one workload on node a, beside an empty node b."""
    cluster = make_cluster({"strategies": {name: args or {}}, "migration": GENTLE})
    for node in ("a", "b"):
        cluster.node(node, zone=f"z{node}")
    owner = cluster.workload("w", count)
    for number in range(count):
        cluster.pod(f"w-{number}", "a", owner, **more)
    return cluster


def told(cluster: Any, name: str, status: Manifest) -> None:
    pod = cluster.get("Pod", name)
    cluster._store(pod.changed(status=merge(pod.status, status)))


def round_of(cluster: Any) -> list[str]:
    """Who is evicted in one round."""
    before = len(cluster.evicted)
    cluster.step(2 * MINUTE)
    evicted: list[str] = cluster.evicted[before:]
    return evicted


TAINT = {"key": "kept", "value": "yes", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("taint", "args", "goes"),
    [
        (TAINT, {}, True),
        (TAINT, {"excludedTaints": ["kept"]}, False),
        (TAINT, {"excludedTaints": ["kept=yes"]}, False),
        (TAINT, {"excludedTaints": ["kept=no"]}, True),
        ({**TAINT, "effect": "PreferNoSchedule"}, {}, False),
        ({**TAINT, "effect": "PreferNoSchedule"}, {"includePreferNoSchedule": True}, True),
        (TAINT, {"namespaces": {"exclude": ["default"]}}, False),
        (TAINT, {"labelSelector": {"matchLabels": {"app": "x"}}}, False),
        (TAINT, {"thresholdPriority": {"value": 0}}, False),
    ],
)
def test_who_does_not_tolerate_a_taint_leaves(make_cluster: Any, taint: Manifest, args: Manifest, goes: bool) -> None:
    cluster = cluster_with(make_cluster, "RemovePodsViolatingNodeTaints", args)
    cluster.node("a", taints=[taint])
    assert bool(round_of(cluster)) == goes


def test_who_tolerates_a_taint_stays(make_cluster: Any) -> None:
    spec = {"tolerations": [{"key": "kept", "operator": "Exists"}]}
    cluster = cluster_with(make_cluster, "RemovePodsViolatingNodeTaints", spec=spec)
    cluster.node("a", taints=[TAINT])
    assert round_of(cluster) == []


def test_who_wants_a_label_that_is_gone_leaves_for_where_it_is(make_cluster: Any) -> None:
    cluster = cluster_with(make_cluster, "RemovePodsViolatingNodeAffinity", spec={"nodeSelector": {"zone": "zb"}})
    assert round_of(cluster) == ["w-0", "w-1", "w-2"]
    cluster = cluster_with(make_cluster, "RemovePodsViolatingNodeAffinity", spec={"nodeSelector": {"zone": "zc"}})
    assert round_of(cluster) == [], "there is no such node"


@pytest.mark.parametrize(
    ("when", "args", "count"),
    [
        ("DoNotSchedule", {}, 2),
        ("ScheduleAnyway", {}, 0),
        ("ScheduleAnyway", {"constraints": ["DoNotSchedule", "ScheduleAnyway"]}, 2),
    ],
)
def test_pods_are_spread_again(make_cluster: Any, when: str, args: Manifest, count: int) -> None:
    spread = {
        "topologyKey": "zone",
        "maxSkew": 1,
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"app": "w"}},
    }
    name = "RemovePodsViolatingTopologySpreadConstraint"
    cluster = cluster_with(make_cluster, name, args, spec={"topologySpreadConstraints": [spread]})
    assert len(round_of(cluster)) == count
    assert round_of(cluster) == []


def test_duplicates_are_spread_over_nodes_that_could_have_them(make_cluster: Any) -> None:
    cluster = cluster_with(make_cluster, "RemoveDuplicates")
    assert round_of(cluster) == ["w-0", "w-1"] and round_of(cluster) == []
    cluster = cluster_with(make_cluster, "RemoveDuplicates", {"excludeOwnerKinds": ["ReplicaSet"]})
    assert round_of(cluster) == []
    cluster = cluster_with(make_cluster, "RemoveDuplicates", spec={"nodeSelector": {"zone": "za"}})
    assert round_of(cluster) == []


def containers(restarts: int, reason: str = "") -> Manifest:
    state = {"waiting": {"reason": reason}} if reason else {"running": {}}
    return {"containerStatuses": [{"name": "c", "restartCount": restarts, "state": state}]}


@pytest.mark.parametrize(
    ("restarts", "reason", "args", "goes"),
    [
        (99, "", {}, False),
        (100, "", {}, True),
        (4, "", {"podRestartThreshold": 5}, False),
        (5, "", {"podRestartThreshold": 5}, True),
        (5, "", {"podRestartThreshold": 5, "states": ["CrashLoopBackOff"]}, False),
        (5, "CrashLoopBackOff", {"podRestartThreshold": 5, "states": ["CrashLoopBackOff"]}, True),
    ],
)
def test_who_restarts_too_often_tries_another_node(
    make_cluster: Any, restarts: int, reason: str, args: Manifest, goes: bool
) -> None:
    cluster = cluster_with(make_cluster, "RemovePodsHavingTooManyRestarts", args)
    told(cluster, "w-1", containers(restarts, reason))
    assert round_of(cluster) == (["w-1"] if goes else [])


def test_the_oldest_are_made_anew_first(make_cluster: Any) -> None:
    cluster = cluster_with(make_cluster, "PodLifeTime", {"maxPodLifeTimeSeconds": 600})
    assert round_of(cluster) == []
    for number in range(4):
        pod = cluster.get("Pod", f"w-{number}")
        born = rfc3339(cluster.now - (20 - number) * MINUTE)
        cluster._store(pod.changed(metadata={**pod.metadata, "creationTimestamp": born}))
    assert round_of(cluster) == ["w-0", "w-1", "w-2"]


@pytest.mark.parametrize(
    ("args", "goes"),
    [
        ({}, True),
        ({"reasons": ["OOMKilled"]}, True),
        ({"reasons": ["Evicted"]}, False),
        ({"exitCodes": [137]}, True),
        ({"exitCodes": [1]}, False),
        ({"excludeOwnerKinds": ["ReplicaSet"]}, False),
        ({"minPodLifetimeSeconds": 600}, False),
    ],
)
def test_failed_pods_go(make_cluster: Any, args: Manifest, goes: bool) -> None:
    cluster = cluster_with(make_cluster, "RemoveFailedPods", args)
    ended = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
    told(cluster, "w-1", {"phase": "Failed", "containerStatuses": [{"name": "c", "state": ended}]})
    assert round_of(cluster) == (["w-1"] if goes else [])


def test_the_only_one_that_failed_goes_too(make_cluster: Any) -> None:
    """It serves nobody: neither the rule of expected replicas nor a budget is about it."""
    cluster = cluster_with(make_cluster, "RemoveFailedPods", count=1)
    told(cluster, "w-0", {"phase": "Failed"})
    assert round_of(cluster) == ["w-0"]


@pytest.mark.parametrize(
    ("limits", "count"),
    [
        ({}, 3),
        ({"maxNoOfPodsToEvictTotal": 2}, 2),
        ({"maxNoOfPodsToEvictPerNode": 1}, 1),
        ({"maxNoOfPodsToEvictPerNamespace": 2}, 2),
    ],
)
def test_a_round_moves_no_more_than_it_may(make_cluster: Any, limits: Manifest, count: int) -> None:
    cluster = make_cluster({"strategies": {"RemovePodsViolatingNodeTaints": {}}, "migration": GENTLE, **limits})
    cluster.node("a", taints=[TAINT])
    cluster.node("b")
    owner = cluster.workload("w", 4)
    for number in range(4):
        cluster.pod(f"w-{number}", "a", owner)
    assert len(round_of(cluster)) == count


def test_a_plan_moves_nobody_beyond_the_room_there_is(make_cluster: Any) -> None:
    """Node b has room for two of three."""
    cluster = cluster_with(make_cluster, "RemovePodsViolatingNodeTaints", cpu="4")
    cluster.node("a", taints=[TAINT])
    assert round_of(cluster) == ["w-0", "w-1"]


def test_who_came_by_a_move_is_not_moved_on(make_cluster: Any) -> None:
    """It restarts as often where it is now: for an hour it stays there, and the plan says so."""
    cluster = cluster_with(make_cluster, "RemovePodsHavingTooManyRestarts")
    told(cluster, "w-1", {"containerStatuses": [{"name": "c", "restartCount": 200}]})
    moved = [round_of(cluster) for _ in range(30)]
    assert [names for names in moved if names] == [["w-1"]]
    (stays,) = cluster.core.query("plan", {})["stays"]
    assert stays["pod"] == "w-1x" and stays["message"].startswith("it came from a by a move; it is left alone until")
    assert [names for names in (round_of(cluster) for _ in range(3)) if names] == [["w-1x"]]
