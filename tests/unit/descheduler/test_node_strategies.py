"""Strategies that look at nodes: by what is asked for of them, by what they cost, by how even that is."""

from typing import Any

import pytest

from descheduler.domain.policy.policy import DeschedulerPolicy
from kube import Manifest

MINUTE = 60_000
GENTLE: Manifest = {
    "maxMigratingPerNode": 0,
    "maxMigratingPerWorkload": "75%",
    "maxUnavailablePerWorkload": "75%",
    "objectLimiters": {"workload": {"duration": "0s"}},
}


def cluster_with(make_cluster: Any, strategies: Manifest, pods: dict[str, list[str]], **migration: Any) -> Any:
    """Nodes of 10 cpus in zones of their own, with pods of so many cpus, each of a workload of four."""
    cluster = make_cluster({"strategies": strategies, "migration": {**GENTLE, **migration}})
    for node, sizes in pods.items():
        cluster.node(node, zone=f"z{node}")
        for number, cpu in enumerate(sizes):
            owner = cluster.workload(f"{node}{number}", 4)
            cluster.pod(f"{node}{number}", node, owner, cpu=cpu)
            for other in range(3):
                cluster.pod(f"{node}{number}-far{other}", "elsewhere", owner, cpu="0")
    return cluster


def round_of(cluster: Any) -> dict[str, str]:
    """The pods that are to move in one round, with where to."""
    found = {}
    for decision in cluster.step(2 * MINUTE):
        for mutation in decision.mutations:
            if decision.name == "MoveProposed" and mutation.manifest:
                notes = mutation.manifest["metadata"]["annotations"]
                found[decision.subject.name] = notes["tidegate.dev/target-node"]
    return found


@pytest.mark.parametrize(
    ("args", "moves"),
    [
        ({}, {"a0": "c", "a1": "c"}),
        ({"numberOfNodes": 1}, {}),
        ({"evictionLimits": {"node": 1}}, {"a0": "c"}),
        ({"dryRun": True}, {}),
        ({"paused": True}, {}),
        ({"nodeSelector": {"matchLabels": {"zone": "za"}}}, {}),
        ({"evictableNamespaces": {"exclude": ["default"]}}, {}),
        ({"useDeviationThresholds": True, "thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 40}}, {"a0": "c"}),
    ],
)
def test_requests_are_spread_from_full_nodes_to_idle_ones(
    make_cluster: Any, args: Manifest, moves: dict[str, str]
) -> None:
    """Of a 90 % are asked for and 60 % may be, of b 40 %, of c 10 %."""
    strategy = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 60}, **args}
    pods = {"a": ["2", "2", "2", "3"], "b": ["4"], "c": ["1"]}
    assert round_of(cluster_with(make_cluster, {"LowNodeUtilization": strategy}, pods)) == moves


def test_requests_are_gathered_on_the_fullest_nodes(make_cluster: Any) -> None:
    """Of c little is asked for: its pods go to a, which is fuller than b, as far as they fit there. That is no reason to return."""
    pods = {"a": ["8"], "b": ["5"], "c": ["1", "1"]}
    cluster = cluster_with(make_cluster, {"HighNodeUtilization": {"thresholds": {"cpu": 30}}}, pods)
    assert round_of(cluster) == {"c0": "a", "c1": "a"} and round_of(cluster) == {}
    pods = {"a": ["9"], "b": ["5"], "c": ["1", "1"]}
    cluster = cluster_with(make_cluster, {"HighNodeUtilization": {"thresholds": {"cpu": 30}}}, pods)
    assert round_of(cluster) == {"c0": "a", "c1": "b"}


GROUPS = [
    {"name": "dear", "nodeSelector": {"matchLabels": {"zone": "za"}}},
    {"name": "fair", "nodeSelector": {"matchLabels": {"zone": "zb"}}},
    {"name": "cheap", "nodeSelector": {"matchLabels": {"zone": "zc"}}},
]


KEEPS = {"evictionOrder": [GROUPS[0], {**GROUPS[1], "keepThreshold": {"cpu": 90}}, GROUPS[2]]}
REJECTS = {"evictionOrder": [*GROUPS[:2], {**GROUPS[2], "rejectThreshold": {"cpu": 10}}]}


@pytest.mark.parametrize(
    ("change", "sizes", "moves"),
    [
        ({}, ["3", "5"], {"a0": "c", "a1": "b"}),
        (KEEPS, ["3", "5"], {"a0": "c", "a1": "b"}),
        (REJECTS, ["3", "5"], {"a0": "b"}),
        ({"mode": "DrainNode"}, ["3", "5"], {"a0": "c", "a1": "b"}),
        ({"mode": "DrainNode"}, ["3", "5", "9"], {"b0": "c"}),
        ({}, ["3", "5", "9"], {"a0": "c", "a1": "b"}),
    ],
)
def test_pods_leave_expensive_nodes(
    make_cluster: Any, change: Manifest, sizes: list[str], moves: dict[str, str]
) -> None:
    """b has 6 free and c 5, which is cheaper: 3 and then 5 have a place, 9 has none. That of 4 on b fits on c while nobody comes there."""
    cluster = cluster_with(
        make_cluster, {"CustomPriority": {"evictionOrder": GROUPS, **change}}, {"a": sizes, "b": ["4"], "c": ["5"]}
    )
    assert round_of(cluster) == moves


def test_a_node_that_is_asked_for_unevenly_gives_one_pod_away(make_cluster: Any) -> None:
    """Nine cpus of ten of a are asked for and no memory; without a2 that is most even, and b is not uneven with it."""
    cluster = cluster_with(make_cluster, {"FragmentationAware": {}}, {"a": ["2", "3", "4"], "b": []})
    assert round_of(cluster) == {"a2": "b"}
    cluster = cluster_with(
        make_cluster, {"FragmentationAware": {"imbalanceThreshold": 0.5}}, {"a": ["4", "4"], "b": []}
    )
    assert round_of(cluster) == {}


def test_the_cost_of_a_pod_is_the_rank_of_its_node(make_cluster: Any) -> None:
    """Of a nothing but these pods would be left, of b as much again; what is told already is not told again."""
    chosen = {
        "podSelectors": [{"selector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a0", "b0"]}]}}]
    }
    pods = {"a": ["2"], "b": ["2", "2"]}
    cluster = cluster_with(make_cluster, {"ScaleDownBinPack": chosen}, pods)
    cluster.step(2 * MINUTE)
    costs = {name: cluster.get("Pod", name).annotations for name in ("a0", "b0", "b1")}
    cost = "controller.kubernetes.io/pod-deletion-cost"
    assert costs == {"a0": {cost: "0"}, "b0": {cost: "1"}, "b1": {}}
    assert cluster.step(2 * MINUTE) == []
    cluster = cluster_with(make_cluster, {"ScaleDownBinPack": {**chosen, "strategy": "EvictDirectly"}}, pods)
    assert round_of(cluster) == {"a0": "b"}
    limited = {**chosen, "strategy": "EvictDirectly", "maxPodsToEvict": 0}
    assert round_of(cluster_with(make_cluster, {"ScaleDownBinPack": limited}, pods)) == {}


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ({"strategies": {"CustomPriority": {"evictionOrder": GROUPS[:1]}}}, "two groups or more"),
        ({"strategies": {"CustomPriority": {"evictionOrder": GROUPS, "autoCordon": True}}}, "kubectl cordon"),
        ({"strategies": {"CustomPriority": {"evictionOrder": GROUPS, "mode": "Quickly"}}}, "BestEffort, DrainNode"),
        ({"strategies": {"HighNodeUtilization": {"thresholds": {"cpu": 120}}}}, "not from 0 to 100"),
        ({"strategies": {"LowNodeUtilization": {"metricsUtilization": {}}}}, "knows no metricsUtilization"),
        ({"strategies": {"Defragmentation": {"maxMoves": "many"}}}, "Defragmentation: maxMoves is 'many'"),
        ({"strategies": {"PodLifeTime": {"nodeFit": False}}}, "nobody is moved without a place"),
        ({"strategies": {"PodLifeTime": {"paused": "yes"}}}, "true or false"),
        ({"migration": {"arbitrationArgs": {"enabled": False}}}, "arbitration is always on"),
        ({"migration": {"defaultDeleteOptions": {"dryRun": ["All"]}}}, "knows no dryRun"),
        ({"migration": {"evictQPS": 1, "evictBurst": 0}}, "lets nobody go"),
        ({"migration": {"nodeSelector": "a==="}}, "no label selector"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(policy: Manifest, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        DeschedulerPolicy.of(policy)


def test_what_has_no_effect_is_told(make_cluster: Any) -> None:
    policy = {"migration": {"maxConcurrentReconciles": 3, "arbitrationArgs": {"interval": "1s"}}, "nodeFit": False}
    told = make_cluster(policy).core.query("plan", {})["notes"]
    assert [note.split()[0] for note in told] == ["nodeFit", "maxConcurrentReconciles", "arbitrationArgs"]
