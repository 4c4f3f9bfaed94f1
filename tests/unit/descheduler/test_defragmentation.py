"""Room for a gang that waits: what moves, what it costs, and that it is enough; against trying everything."""

from itertools import permutations
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from descheduler.domain.migration.arbiter import Arbiter
from descheduler.domain.plan import Plan
from descheduler.domain.policy.strategy_args import StrategyArgs
from descheduler.domain.strategies.defragmentation import defragment
from descheduler.domain.strategies.violations import remove_tainted
from kube import Manifest, merge

QUIET = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
MINUTE = 60_000
FREE = {
    "migration": {
        "maxMigratingPerNode": 0,
        "maxMigratingPerWorkload": "100%",
        "maxUnavailablePerWorkload": "100%",
        "skipCheckExpectedReplicas": True,
        "objectLimiters": {"workload": {"duration": "0s"}},
    }
}


def waiting(cluster: Any, name: str, cpu: int, *, gang: str = "", **more: Any) -> None:
    """A pod for which the scheduler has found no node."""
    text = "0/3 nodes are available: 3 Insufficient cpu."
    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": text}
    notes = {"annotations": {"scheduling.k8s.io/group-name": gang}} if gang else {}
    cluster.pod(name, "", cpu=str(cpu), metadata=notes, spec=more)
    pod = cluster.get("Pod", name)
    cluster._store(pod.changed(status={"phase": "Pending", "conditions": [told]}))


def group(cluster: Any, name: str, minimum: int, phase: str = "Inqueue", **spec: Any) -> None:
    manifest: Manifest = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": name}}
    cluster.put({**manifest, "spec": {"minMember": minimum, **spec}, "status": {"phase": phase}})


def planned(cluster: Any, **args: Any) -> Plan:
    core = cluster.core
    plan = Plan(
        core._view, cluster.policy, Arbiter.of(cluster.policy.migration, core._book, cluster.now), {}, cluster.now
    )
    defragment(StrategyArgs(given={"maxCostPercent": 1000, **args}), plan)
    return plan


def cluster_with(make_cluster: Any, sizes: list[int], pods: list[tuple[int, int]]) -> Any:
    """Nodes of so many cpus, and pods of (node, cpus), each of a workload of its own."""
    cluster = make_cluster(FREE)
    for number, cpu in enumerate(sizes):
        cluster.node(f"n{number}", cpu)
    for number, (node, cpu) in enumerate(pods):
        cluster.pod(f"p{number}", f"n{node}", cluster.workload(f"w{number}", 1), cpu=str(cpu))
    return cluster


def test_the_cheapest_node_is_cleared(make_cluster: Any) -> None:
    """Four are wanted: n0 would have to lose a pod of three, n1 one of two, and n2 has two free for it."""
    cluster = cluster_with(make_cluster, [5, 4, 5], [(0, 3), (1, 2), (2, 3)])
    waiting(cluster, "big", 4)
    cluster.now += 6 * MINUTE
    assert [(move.pod.name, move.target) for move in planned(cluster).moves] == [("p1", "n0")]


def test_nobody_is_moved_for_who_does_not_wait_for_room(make_cluster: Any) -> None:
    for case in ("young", "quota", "not let in", "topology", "fits"):
        cluster = cluster_with(make_cluster, [5, 4, 5], [(0, 3), (1, 2), (2, 3)])
        group(
            cluster,
            "g",
            1,
            "Pending" if case == "not let in" else "Inqueue",
            **({"networkTopology": {"mode": "hard"}} if case == "topology" else {}),
        )
        waiting(cluster, "big", 2 if case == "fits" else 4, gang="g")
        if case == "quota":
            pod = cluster.get("Pod", "big")
            held = {"conditions": [{"type": "QuotaReserved", "status": "False"}]}
            cluster._store(pod.changed(status=merge(pod.status, held)))
        cluster.now += MINUTE if case == "young" else 6 * MINUTE
        assert planned(cluster).moves == [], case


def test_what_is_more_important_stays(make_cluster: Any) -> None:
    cluster = cluster_with(make_cluster, [5, 4, 5], [(0, 3), (1, 2), (2, 3)])
    pod = cluster.get("Pod", "p1")
    cluster._store(pod.changed(body={**pod.body, "spec": {**pod.spec, "priority": 10}}))
    waiting(cluster, "big", 4, priority=5)
    cluster.now += 6 * MINUTE
    assert "p1" not in [move.pod.name for move in planned(cluster).moves]


def test_limits_are_kept_as_for_all_moves(make_cluster: Any) -> None:
    """Both pods that would have to go are of one workload, of which only one may."""
    cluster = make_cluster({})
    for number in range(4):
        cluster.node(f"n{number}", 4)
    owner = cluster.workload("w", 4)
    for number in range(4):
        cluster.pod(f"p{number}", f"n{number}", owner, cpu="2")
    group(cluster, "g", 2)
    for number in range(2):
        waiting(cluster, f"big-{number}", 4, gang="g")
    cluster.now += 6 * MINUTE
    plan = planned(cluster)
    assert plan.moves == [] and "no 8 moves would make room for the 2 that it lacks" in plan.notes[0]


@QUIET
@given(
    st.lists(st.integers(3, 8), min_size=2, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), max_size=7),
    st.integers(2, 8),
    st.integers(1, 2),
    st.integers(1, 4),
)
def test_the_gang_fits_after_the_moves_and_everybody_else_does(
    make_cluster: Any, sizes: list[int], raw: list[tuple[int, int]], cpu: int, minimum: int, most: int
) -> None:
    pods = within(sizes, [(node % len(sizes), size) for node, size in raw])
    cluster = cluster_with(make_cluster, sizes, pods)
    group(cluster, "g", minimum)
    for number in range(minimum):
        waiting(cluster, f"big-{number}", cpu, gang="g")
    cluster.now += 6 * MINUTE
    moves = planned(cluster, maxMoves=most).moves
    assert len(moves) <= most and len({move.pod.name for move in moves}) == len(moves)
    places = {f"p{number}": place for number, place in enumerate(pods)}
    for move in moves:
        places[move.pod.name] = (int(move.target[1:]), places[move.pod.name][1])
    free = left(sizes, list(places.values()))
    assert min(free) >= 0
    if moves:
        assert not fits_all(left(sizes, pods), cpu, minimum) and fits_all(free, cpu, minimum)
    elif minimum == 1 and not fits_all(left(sizes, pods), cpu, 1):
        assert not any_single_move(sizes, pods, cpu), "one move would have been enough"


def within(sizes: list[int], pods: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those pods, in order, for which there is room."""
    found: list[tuple[int, int]] = []
    for pod in pods:
        if min(left(sizes, [*found, pod])) >= 0:
            found.append(pod)
    return found


def left(sizes: list[int], pods: list[tuple[int, int]]) -> list[int]:
    free = list(sizes)
    for node, cpu in pods:
        free[node] -= cpu
    return free


def fits_all(free: list[int], cpu: int, count: int) -> bool:
    return sum(room // cpu for room in free) >= count


def any_single_move(sizes: list[int], pods: list[tuple[int, int]], cpu: int) -> bool:
    for number, (node, size) in enumerate(pods):
        for _, other in permutations(range(len(sizes)), 2):
            moved = [(other, size) if one == number else place for one, place in enumerate(pods)]
            if other != node and min(left(sizes, moved)) >= 0 and left(sizes, moved)[node] >= cpu:
                return True
    return False


def test_the_most_important_gang_is_helped_first(make_cluster: Any) -> None:
    cluster = cluster_with(make_cluster, [5, 4, 5], [(0, 3), (1, 2), (2, 3)])
    for name, priority in (("old", 1), ("urgent", 2)):
        waiting(cluster, name, 4, priority=priority)
        cluster.now += MINUTE
    cluster.now += 6 * MINUTE
    (note,) = planned(cluster).notes
    assert note.startswith("gang urgent: 1 move would let it start; they disturb 50 % of what it asks for")


def test_of_each_role_what_lacks_is_given_a_place(make_cluster: Any) -> None:
    """Two of the role big are needed; the small ones, which come first by name, would fit as it is."""
    cluster = cluster_with(make_cluster, [4, 4, 4], [(0, 1), (1, 1), (2, 1)])
    group(cluster, "g", 2, minTaskMember={"big": 2})
    for name, role, cpu in (("a", "small", 3), ("b", "small", 3), ("c", "big", 4), ("d", "big", 3)):
        waiting(cluster, name, cpu, gang="g")
        pod = cluster.get("Pod", name)
        notes = {"annotations": {**pod.annotations, "volcano.sh/task-spec": role}}
        cluster._store(pod.changed(metadata=merge(pod.metadata, notes)))
    cluster.now += 6 * MINUTE
    (move,) = planned(cluster).moves
    assert "gets room for c of gang g" in move.message and "1 move would let it start" in move.message


def test_a_bundle_is_helped_as_one(make_cluster: Any) -> None:
    """x and y need a node each. Where y waits for something else, or has no pods, nobody moves for x."""
    for case in ("both", "quota", "missing"):
        cluster = cluster_with(make_cluster, [4, 4, 4, 4], [(0, 1), (1, 1), (2, 3), (3, 3)])
        for name in ("x", "y") if case != "missing" else ("x",):
            waiting(cluster, f"{name}-0", 4)
            pod = cluster.get("Pod", f"{name}-0")
            notes = {
                "gang.scheduling.koordinator.sh/name": name,
                "gang.scheduling.koordinator.sh/min-available": "1",
                "gang.scheduling.koordinator.sh/groups": '["default/x", "y"]',
            }
            cluster._store(pod.changed(metadata=merge(pod.metadata, {"annotations": notes})))
        if case == "quota":
            pod = cluster.get("Pod", "y-0")
            held = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "queue q may have 4 cpu"}]}
            cluster._store(pod.changed(status=merge(pod.status, held)))
        cluster.now += 6 * MINUTE
        moved = {move.pod.name: move.target for move in planned(cluster).moves}
        assert moved == ({"p0": "n2", "p1": "n3"} if case == "both" else {}), case


def test_nobody_is_moved_to_where_it_would_be_hot(make_cluster: Any) -> None:
    """p1 would fit best on n0; there it would be undone by load in the next round, so it goes to n2."""
    policy = {**FREE, "lowThresholds": {"cpu": 10}, "highThresholds": {"cpu": 50}}
    policy["strategies"] = {"Defragmentation": {"maxCostPercent": 100}}
    cluster = make_cluster(policy)
    for number, cpu in enumerate((5, 4, 6)):
        cluster.node(f"n{number}", cpu)
        cluster.pod(f"p{number}", f"n{number}", cluster.workload(f"w{number}", 2), cpu="2" if number == 1 else "3")
    waiting(cluster, "big", 4)
    cluster.now += 6 * MINUTE
    cluster.usage("n0", {"p0": 2400})
    cluster.usage("n1", {"p1": 500})
    cluster.usage("n2", {"p2": 100})
    cluster.now += MINUTE
    plan = cluster.core.query("plan", {"now": cluster.now})
    assert [(move["pod"], move["to"]) for move in plan["moves"]] == [("p1", "n2")]


def test_room_that_was_made_is_not_given_away_in_the_same_plan(make_cluster: Any) -> None:
    """n1 is cleared for the gang; a pod that n3 should lose for its taint has no other place, and stays."""
    cluster = cluster_with(make_cluster, [5, 4, 5], [(0, 3), (1, 2), (2, 3)])
    cluster.node("n3", 9, taints=[{"key": "kept", "effect": "NoSchedule"}])
    cluster.pod("p3", "n3", cluster.workload("w3", 2), cpu="4")
    waiting(cluster, "big", 4)
    cluster.now += 6 * MINUTE
    plan = planned(cluster)
    remove_tainted(StrategyArgs(), plan)
    assert [move.pod.name for move in plan.moves] == ["p1"]


def test_nobody_moves_for_a_gang_that_can_start_soon_by_itself(make_cluster: Any) -> None:
    """p2 says that it runs for ten minutes, of which seven are over; who says longer, or is late, frees no room in time."""
    for length, moved in (("10m", []), ("13m", ["p1"]), ("5m", ["p1"])):
        cluster = cluster_with(make_cluster, [5, 4, 5], [(0, 3), (1, 2), (2, 3)])
        pod = cluster.get("Pod", "p2")
        notes = {"annotations": {"tidegate.dev/running-estimate": length}}
        cluster._store(pod.changed(metadata=merge(pod.metadata, notes)))
        waiting(cluster, "big", 4)
        cluster.now += 7 * MINUTE
        plan = planned(cluster)
        assert [move.pod.name for move in plan.moves] == moved, length
        assert ("it can start at 2026-01-01T00:10:00Z, when p2 ends" in plan.notes[0]) == (not moved)
