"""Balancing by load: who is hot, who goes first, and where to; against plain words, and on random clusters."""

import json
import random
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from descheduler.domain.load.anomaly import AnomalyRecords
from descheduler.domain.load.victim_order import fit
from descheduler.domain.migration.limits import most_migrating, most_unavailable, next_turn
from descheduler.domain.policy.load_args import AnomalyCondition
from descheduler.domain.policy.migration_args import MigrationArgs, ObjectLimiter
from descheduler.domain.policy.strategy_args import KNOWN
from kube import Decision, Manifest

MINUTE = 60_000
INTERVAL = 120_000
POLICY: Manifest = {
    "lowThresholds": {"cpu": 30},
    "highThresholds": {"cpu": 50},
    "anomalyCondition": {"consecutiveAbnormalities": 1},
    "nodeMetricExpirationSeconds": 600,
}


def moves(decided: list[Decision]) -> list[tuple[str, str]]:
    """Pods that are to move, with where to."""
    found = []
    for decision in decided:
        for mutation in decision.mutations:
            if decision.name == "MoveProposed" and mutation.manifest:
                found.append(
                    (decision.subject.name, mutation.manifest["metadata"]["annotations"]["tidegate.dev/target-node"])
                )
    return found


def hot_and_cool(make_cluster: Any, policy: Manifest | None = None, pods: dict[str, int] | None = None) -> Any:
    """A node with pods of one workload, which use so much, and an empty one."""
    used = pods or {"w-0": 2000, "w-1": 2000, "w-2": 2000, "w-3": 500}
    cluster = make_cluster({**POLICY, **(policy or {})})
    cluster.node("hot")
    cluster.node("cool")
    owner = cluster.workload("w", len(used))
    for name in used:
        cluster.pod(name, "hot", owner)
    cluster.now += MINUTE
    cluster.usage("hot", used)
    cluster.usage("cool", {}, 1000)
    return cluster


def test_the_smallest_that_is_enough_goes_to_the_cool_node(make_cluster: Any) -> None:
    cluster = hot_and_cool(make_cluster, pods={"w-0": 3000, "w-1": 1200, "w-2": 2200, "w-3": 500})
    assert moves(cluster.step(MINUTE)) == [("w-2", "cool")]
    assert cluster.evicted == ["w-2"]


def test_old_reports_move_nobody(make_cluster: Any) -> None:
    cluster = hot_and_cool(make_cluster, {"nodeMetricExpirationSeconds": 59})
    assert moves(cluster.step(MINUTE)) == []


@pytest.mark.parametrize("policy", [{"paused": True}, {"dryRun": True}, {"planOnly": True}, {"numberOfNodes": 1}])
def test_what_is_switched_off_moves_nobody(make_cluster: Any, policy: Manifest) -> None:
    assert moves(hot_and_cool(make_cluster, policy).step(MINUTE)) == []


def test_only_pods_in_the_scope_go(make_cluster: Any) -> None:
    none = {"evictableNamespaces": {"exclude": ["default"]}}
    others = {"podSelectors": [{"name": "x", "selector": {"matchLabels": {"app": "x"}}}]}
    these = {"podSelectors": [{"name": "w", "selector": {"matchLabels": {"app": "w"}}}]}
    for policy, count in ((none, 0), (others, 0), (these, 1)):
        assert len(moves(hot_and_cool(make_cluster, policy).step(MINUTE))) == count


def test_on_nodes_that_important_pods_heat_only_these_go(make_cluster: Any) -> None:
    policy = {"highThresholds": {"cpu": 90}, "prodLowThresholds": {"cpu": 20}, "prodHighThresholds": {"cpu": 40}}
    cluster = make_cluster({**POLICY, **policy})
    cluster.node("hot")
    cluster.node("cool")
    for name, priority in (("free", 3500), ("prod", 9500)):
        owner = cluster.workload(name, 3)
        for number in range(3):
            cluster.pod(f"{name}-{number}", "hot", owner, spec={"priority": priority})
    cluster.now += MINUTE
    cluster.usage(
        "hot", {**{f"prod-{number}": 1500 for number in range(3)}, **{f"free-{number}": 1000 for number in range(3)}}
    )
    cluster.usage("cool", {})
    assert moves(cluster.step(MINUTE)) == [("prod-2", "cool")] or moves(cluster.decided)[0][0].startswith("prod")


def test_what_came_after_a_report_counts_with_what_it_asks_for(make_cluster: Any) -> None:
    """Three pods of 2 cpus came to the cool node since: by what they ask for it is not cool any more."""
    cluster = hot_and_cool(make_cluster)
    cluster.now += MINUTE // 2
    owner = cluster.workload("new", 3)
    for number in range(3):
        cluster.pod(f"new-{number}", "cool", owner, cpu="2")
    assert moves(cluster.step(MINUTE // 2)) == []


def test_a_round_goes_on_where_the_predecessor_was(make_cluster: Any) -> None:
    """Three hot rounds are borne. A successor with the private state acts in the fourth, too."""
    cluster = hot_and_cool(make_cluster, {"anomalyCondition": {"consecutiveAbnormalities": 3}})
    cluster.step(MINUTE)
    cluster.step(INTERVAL)
    private = cluster.core.remember()
    assert json.loads(private)["records"]["default/hot"]["abnormal"] == 2
    cluster.new_core(private=private)
    assert moves(cluster.step(INTERVAL)) == []
    assert len(moves(cluster.step(INTERVAL))) == 1


def test_who_is_on_the_move_counts_where_he_goes(make_cluster: Any) -> None:
    """Its reservation has no place yet. Without it the node is not hot; and what it will use is not given to others."""
    cluster = hot_and_cool(make_cluster)
    cluster.places = False
    assert moves(cluster.step(MINUTE)) == [("w-0", "cool")]
    assert moves(cluster.step(INTERVAL)) == [] and cluster.evicted == []
    cluster.usage("hot", {"w-0": 2000, "w-1": 2100, "w-2": 4400, "w-3": 500})
    cluster.core = cluster.new_core(private=cluster.core.remember())
    cluster.step(INTERVAL)
    assert moves(cluster.decided)[1:] == [("w-3", "cool")], (
        "2.1 more beside 1 and the 2 that come would be above the mark"
    )


def test_a_job_tells_why_and_what_its_pod_used(make_cluster: Any) -> None:
    """And its successor counts with that until a report tells of it: the cool node is at 3 of 10, and not at what is asked for."""
    cluster = hot_and_cool(make_cluster, {"nodeMetricExpirationSeconds": 7200})
    cluster.step(MINUTE)
    (job,) = cluster.store.of_kind("PodMigrationJob.scheduling.koordinator.sh").values()
    evidence = json.loads(job.annotations["tidegate.dev/evidence"])
    assert evidence["uses"] == {"cpu": "2"} and "hot is hot: 6500m of 10 cpu (65 %) are used" in evidence["why"]
    heats = {node["node"]: node["used"]["cpu"] for node in cluster.core.query("plan", {})["nodes"]}
    assert heats == {"hot": "4500m (45 %)", "cool": "3 (30 %)"}


def test_who_could_not_be_moved_is_left_alone_for_a_while(make_cluster: Any) -> None:
    """No room is found for the reservation within five minutes: another pod is tried, and a quarter of an hour later this one."""
    cluster = hot_and_cool(make_cluster, {"nodeMetricExpirationSeconds": 7200}, pods={"w-0": 3000, "w-1": 2500})
    cluster.places = False
    tries: dict[str, list[int]] = {}
    for minute in range(60):
        for name, _ in moves(cluster.step(MINUTE)):
            tries.setdefault(name, []).append(minute)
    assert tries["w-1"][0] < tries["w-0"][0] and len(tries["w-1"]) > 1
    assert all(later - before >= 20 for times in tries.values() for before, later in pairwise(times))


def test_two_strategies_do_not_move_one_pod_twice(make_cluster: Any) -> None:
    """Four pods of one controller share a hot node: two are too many there, and one makes it too hot."""
    unlimited = {"maxMigratingPerNode": 0, "maxMigratingPerWorkload": "75%", "maxUnavailablePerWorkload": "75%"}
    migration = {"objectLimiters": {"workload": {"duration": "0s"}}, **unlimited}
    cluster = hot_and_cool(make_cluster, {"strategies": {"RemoveDuplicates": {}}, "migration": migration})
    names = [name for name, _ in moves(cluster.step(MINUTE))]
    assert len(names) == len(set(names)) == 2 and len(cluster.evicted) == 2


def test_who_only_plans_plans_the_same_in_each_round(make_cluster: Any) -> None:
    """Nobody was relieved, so the node does not have to be hot anew."""
    for mode in ({"planOnly": True}, {"dryRun": True}, {"migration": {"dryRun": True}}):
        cluster = hot_and_cool(make_cluster, {"anomalyCondition": {"consecutiveAbnormalities": 2}, **mode})
        for planned in (0, 0, 1, 1):
            assert len(cluster.core.query("plan", {"now": cluster.now})["moves"]) == planned
            cluster.step(INTERVAL)
        assert cluster.evicted == []


def test_a_node_that_was_relieved_has_to_be_hot_anew(make_cluster: Any) -> None:
    condition, records = AnomalyCondition(2, 1, MINUTE), AnomalyRecords()
    seen = [records.mark("p/n", True, condition, now) for now in range(1, 5)]
    assert seen == [False, False, True, True]
    records.reset("p/n")
    assert [records.mark("p/n", True, condition, now) for now in range(5, 8)] == [False, False, True]
    assert records.mark("p/n", False, condition, 8) is False and records.mark("p/n", True, condition, 9) is True
    assert [records.mark("p/n", False, condition, now) for now in (10, 11)] == [False, False]
    assert records.mark("p/n", True, condition, 12) is False


@given(st.lists(st.integers(0, 6000), min_size=1, max_size=8), st.integers(1, 3000))
def test_fit_is_best_for_what_is_just_enough(usages: list[int], excess: int) -> None:
    best = max(usages, key=lambda used: (fit({"cpu": used}, {"cpu": excess}, {}), -used))
    enough = [used for used in usages if used >= excess]
    assert best == (min(enough) if enough else max(usages))


@given(st.lists(st.integers(0, 900), max_size=12), st.integers(1, 5), st.integers(1, 3), st.integers(0, 1000))
def test_turns_are_those_of_a_bucket_of_tokens(times: list[int], most: int, burst: int, now: int) -> None:
    """Against the bucket in plain fractions, with spans of 300."""
    span, tokens, last = 300, Fraction(burst), 0
    for at in sorted(times):
        tokens = min(Fraction(burst), tokens + Fraction((at - last) * most, span)) - 1
        last = at
    at = next_turn(ObjectLimiter(span, None, burst), most, times)
    later = max(now, last)
    has = min(Fraction(burst), tokens + Fraction((later - last) * most, span)) >= 1
    assert (at <= later) == has


@given(st.integers(1, 200))
def test_limits_of_workloads_leave_somebody(replicas: int) -> None:
    """But for a single one, of which the rule of expected replicas takes care."""
    args = MigrationArgs()
    for most in (most_migrating(args, replicas), most_unavailable(args, replicas)):
        assert 1 <= most <= max(1, replicas - 1, replicas if replicas == 1 else 1)
        assert most == (replicas // 10 if replicas > 10 else 2 if replicas >= 4 else 1)


EVERY: Manifest = {name: {} for name in KNOWN} | {
    "PodLifeTime": {"maxPodLifeTimeSeconds": 60},
    "LowNodeUtilization": {"thresholds": {"cpu": 10}, "targetThresholds": {"cpu": 15}},
    "HighNodeUtilization": {"thresholds": {"cpu": 15}},
    "CustomPriority": {"evictionOrder": [{"nodeSelector": {"matchLabels": {"disk": "ssd"}}}, {"name": "rest"}]},
    "FragmentationAware": {"imbalanceThreshold": 0.05, "minImprovementThreshold": 0.01},
    "ScaleDownBinPack": {"strategy": "EvictDirectly"},
}
"""Strategies that disagree: what one spreads another gathers."""


# --- random clusters -----------------------------------------------------------------------------------------------


@st.composite
def clusters(draw: st.DrawFn) -> dict[str, Any]:
    """Nodes with pods of a few workloads, what each uses, and budgets."""
    nodes = draw(st.integers(2, 5))
    workloads = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    pods = [
        (workload, number, draw(st.integers(0, nodes - 1)), draw(st.sampled_from([100, 900, 1500, 2500, 4500])))
        for workload, replicas in enumerate(workloads)
        for number in range(replicas)
    ]
    return {
        "nodes": [draw(st.sampled_from([{}, {"disk": "ssd"}])) for _ in range(nodes)],
        "tainted": [draw(st.booleans()) and draw(st.booleans()) for _ in range(nodes)],
        "workloads": workloads,
        "wants_ssd": [draw(st.booleans()) for _ in workloads],
        "pods": pods,
        "budgets": {number: draw(st.integers(0, 6)) for number in range(len(workloads)) if draw(st.booleans())},
        "policy": {
            **POLICY,
            "anomalyCondition": {"consecutiveAbnormalities": draw(st.sampled_from([1, 2]))},
            "migration": {
                "objectLimiters": {"workload": {"duration": draw(st.sampled_from(["0s", "5m"]))}},
                "maxMigratingPerNode": draw(st.sampled_from([0, 2])),
            },
            **draw(st.sampled_from([{}, {"maxNoOfPodsToEvictPerNode": 1}])),
        },
    }


def built(make_cluster: Any, made: dict[str, Any]) -> Any:
    cluster = make_cluster(made["policy"])
    taint = [{"key": "kept", "value": "", "effect": "NoSchedule"}]
    for number, labels in enumerate(made["nodes"]):
        cluster.node(f"n{number}", taints=taint if made["tainted"][number] else None, **labels)
    owners = [cluster.workload(f"w{number}", replicas) for number, replicas in enumerate(made["workloads"])]
    for workload, number, node, _ in made["pods"]:
        spec = {"nodeSelector": {"disk": "ssd"}} if made["wants_ssd"][workload] else {}
        cluster.pod(f"w{workload}-{number}", f"n{node}", owners[workload], cpu="500m", spec=spec)
    for workload, least in made["budgets"].items():
        cluster.budget(f"w{workload}", least)
    cluster.now += MINUTE
    return cluster


def usages(made: dict[str, Any], cluster: Any) -> dict[str, dict[str, int]]:
    """What the pods on each node use now: those that were made again as much as those before them."""
    first = {f"w{workload}-{number}": used for workload, number, _, used in made["pods"]}
    found: dict[str, dict[str, int]] = {f"n{number}": {} for number in range(len(made["nodes"]))}
    for pod in cluster.store.of_kind("Pod").values():
        found[pod.spec["nodeName"]][pod.name] = first[pod.name.rstrip("x")]
    return found


def report(made: dict[str, Any], cluster: Any) -> dict[str, int]:
    """Every node reports; the sums."""
    told = usages(made, cluster)
    for node, pods in told.items():
        cluster.usage(node, pods)
    return {node: sum(pods.values()) for node, pods in told.items()}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(made=clusters())
def test_rounds_converge_and_nobody_is_hurt(made: dict[str, Any], make_cluster: Any) -> None:
    """In each round: budgets and limits hold, a target would take the pod and stays below its mark, what was cool enough stays so."""
    cluster = built(make_cluster, made)
    total: list[tuple[str, str]] = []
    for _ in range(14):
        before = report(made, cluster)
        cluster.step()
        serving, was = counts(cluster), list(cluster.store.of_kind("Pod").values())
        evicted = len(cluster.evicted)
        moved = moves(cluster.step(INTERVAL))
        total += moved
        gone = [name.split("-")[0] for name in cluster.evicted[evicted:]]
        for app in set(gone):
            replicas = made["workloads"][int(app[1:])]
            assert gone.count(app) <= (2 if replicas >= 4 else 1) and replicas > 1
            assert serving[app] - gone.count(app) >= made["budgets"].get(int(app[1:]), 0)
        origins = {pod.name: pod.spec["nodeName"] for pod in was}
        first = {f"w{workload}-{number}": used for workload, number, _, used in made["pods"]}
        for node in {origins[name] for name, _ in moved}:
            left = [first[name.rstrip("x")] for name, _ in moved if origins[name] == node]
            assert before[node] - sum(left[:-1]) > 5000, "no more move than are needed"
        after = {node: sum(pods.values()) for node, pods in usages(made, cluster).items()}
        for name, target in moved:
            assert before[target] <= 3000 and after[target] <= 5000 and not made["tainted"][int(target[1:])]
            workload = int(name.split("-")[0][1:])
            assert not made["wants_ssd"][workload] or made["nodes"][int(target[1:])].get("disk") == "ssd"
        assert all(before[node] > 5000 or after[node] <= 5000 for node in before)
    assert len(total) <= len(made["pods"]), "a pod goes at most once: nothing comes back"
    report(made, cluster)
    assert moves(cluster.step(INTERVAL)) == []


def counts(cluster: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    for pod in cluster.store.of_kind("Pod").values():
        found[pod.labels["app"]] = found.get(pod.labels["app"], 0) + 1
    return found


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(made=clusters())
def test_strategies_that_disagree_move_nobody_twice(made: dict[str, Any], make_cluster: Any) -> None:
    """Within an hour, and no node is asked for more than it has; budgets and workloads keep what they need."""
    policy = {**made["policy"], "strategies": EVERY}
    cluster = built(make_cluster, {**made, "policy": policy})
    total: list[str] = []
    for _ in range(10):
        report(made, cluster)
        serving, evicted = counts(cluster), len(cluster.evicted)
        total += [name for name, _ in moves(cluster.step(INTERVAL))]
        gone = [name.split("-")[0] for name in cluster.evicted[evicted:]]
        for app in set(gone):
            assert serving[app] - gone.count(app) >= max(1, made["budgets"].get(int(app[1:]), 0))
    assert not [name for name in total if name.endswith("x")] and len(total) == len(set(total))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(made=clusters(), seed=st.integers(0, 999))
def test_a_plan_does_not_depend_on_the_order_of_facts(made: dict[str, Any], seed: int, make_cluster: Any) -> None:
    cluster = built(make_cluster, {**made, "policy": {**made["policy"], "strategies": EVERY}})
    report(made, cluster)
    objects = list(cluster.store.objects.values())
    random.Random(seed).shuffle(objects)
    plans = []
    for order in (None, objects):
        core = cluster.new_core(order=order)
        core.decide(cluster.now, frozenset())
        plans.append([core.decide(cluster.now + INTERVAL * turn, frozenset()) for turn in (1, 2)])
    assert plans[0] == plans[1]
