"""What is told about shares, and when; and what users read in a queue's status."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from queue_manager.domain import QueueCore, QueuePolicy

QUEUE = "Queue.scheduling.volcano.sh"


def told(decisions: list[Any]) -> int:
    return sum(decision.name == "EntitlementsComputed" for decision in decisions)


def allocated(cluster: Any, queue: str) -> Any:
    return cluster.read(QUEUE, queue, "").status.get("allocated")


def test_the_payload_names_all_that_the_scheduler_needs(cluster: Any) -> None:
    cluster.node(cpu=10, pods=110)
    cluster.queue("q", weight=3, priority=7, reclaimable=False, dequeueStrategy="fifo", capability={"cpu": 4})
    cluster.pod("p", {"cpu": 6}, queue="q")
    decisions = [decision for decision in cluster.settle() if decision.name == "EntitlementsComputed"]
    assert decisions[-1].subject.name == "root"
    assert cluster.entitled["q"] == {
        "parent": "root",
        "weight": 3,
        "priority": 7,
        "reclaimable": False,
        "open": True,
        "deserved": {"cpu": 4000},
        "guarantee": {},
        "capability": {"cpu": 4000},
        "strict_fifo": True,
    }
    assert set(cluster.entitled) == {"root", "default", "q"}


def test_binding_a_pod_tells_nothing_new(cluster: Any) -> None:
    """What a queue asks for is the same before and after."""
    cluster.node(cpu=10)
    cluster.pod("p", {"cpu": 6})
    cluster.settle()
    cluster.bind("p")
    assert told(cluster.settle()) == 0


def test_versions_grow_after_a_restart_too(cluster: Any) -> None:
    cluster.node(cpu=10)
    cluster.settle()
    versions = [found.payload["version"] for found in cluster.decided if found.name == "EntitlementsComputed"]
    assert versions == sorted(set(versions))
    cluster.restart()
    cluster.now += 1
    [again] = [found for found in cluster.settle() if found.name == "EntitlementsComputed"]
    assert again.payload["version"] > versions[-1]


def test_shares_follow_supply_and_demand(cluster: Any) -> None:
    """Two equal queues: one has all until the other asks; a broken node shares nothing."""
    cluster.node("n1", cpu=10)
    cluster.node("n2", cpu=10)
    cluster.queue("a")
    cluster.queue("b")
    for number in range(4):
        cluster.pod(f"a-{number}", {"cpu": 5}, queue="a")
    cluster.settle()
    assert cluster.deserved("a") == {"cpu": 20_000}
    for number in range(4):
        cluster.pod(f"b-{number}", {"cpu": 5}, queue="b")
    cluster.settle()
    assert cluster.deserved("a") == cluster.deserved("b") == {"cpu": 10_000}
    node = cluster.read("Node", "n2", "")
    cluster.status(node.key, {"conditions": [{"type": "Ready", "status": "False"}]})
    cluster.settle()
    assert cluster.deserved("a") == {"cpu": 5_000}


def test_pods_of_a_closed_queue_keep_what_they_have_and_ask_for_no_more(cluster: Any) -> None:
    cluster.node(cpu=10)
    cluster.queue("q")
    cluster.pod("runs", {"cpu": 2}, queue="q")
    cluster.pod("waits", {"cpu": 5}, queue="q")
    cluster.settle()
    cluster.bind("runs")
    cluster.command("c", "CloseQueue", "q")
    cluster.settle()
    assert cluster.deserved("q") == {"cpu": 2000}


def test_a_gated_pod_does_not_compete(cluster: Any) -> None:
    cluster.node(cpu=10)
    cluster.pod("p", {"cpu": 5}, schedulingGates=[{"name": "hold"}])
    cluster.settle()
    assert cluster.deserved("default") == {}


def test_a_group_let_in_asks_for_its_minimum_before_its_pods_exist(cluster: Any) -> None:
    """Else the first pods of a job would find their queue without a share."""
    cluster.node(cpu=10)
    cluster.group("g", minMember=2, minResources={"cpu": 4})
    cluster.settle()
    assert cluster.deserved("default") == {"cpu": 4000}


def test_a_namespace_names_the_queue_of_its_bare_pods(cluster: Any) -> None:
    """Also when the annotation comes after the pods."""
    cluster.node(cpu=10)
    cluster.queue("q")
    cluster.pod("p", {"cpu": 1}, namespace="lab")
    cluster.settle()
    annotations = {"scheduling.volcano.sh/queue-name": "q"}
    cluster.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab", "annotations": annotations}})
    cluster.settle()
    assert cluster.deserved("q") == {"cpu": 1000}
    assert cluster.deserved("default") == {}


def test_the_status_says_what_the_queue_and_all_below_it_have(cluster: Any) -> None:
    cluster.node(cpu=10, memory="8Gi")
    cluster.queue("dept")
    cluster.queue("team", parent="dept")
    cluster.group("g", minMember=1, queue="team")
    cluster.pod("p", {"cpu": "1500m", "memory": "1Gi"}, group="g")
    cluster.settle()
    cluster.bind("p")
    cluster.settle()
    for queue in ("team", "dept", "root"):
        assert allocated(cluster, queue) == {"cpu": "1500m", "memory": "1Gi"}
    assert cluster.read(QUEUE, "team", "").status["inqueue"] == 1
    cluster.phase("p", "Succeeded")
    cluster.now += 1000
    cluster.settle()
    assert allocated(cluster, "team") == {}


def test_reports_are_written_once_a_second_while_pods_move(cluster: Any) -> None:
    """Ten bindings, 100 ms apart, change the status twice, and the last state is written in the end."""
    cluster.node(cpu=100)
    cluster.settle()
    cluster.now += 5000
    reports = 0
    for number in range(10):
        cluster.pod(f"p-{number}", {"cpu": 1}, nodeName="n")
        reports += sum(found.name == "QueueUseReported" for found in cluster.settle())
        cluster.now += 100
    assert reports == 1
    assert cluster.core.deadline() == cluster.now
    cluster.settle()
    assert allocated(cluster, "default") == {"cpu": "10"}
    assert cluster.core.deadline() is None


def test_a_guarantee_larger_than_the_cluster_stops_nobody(cluster: Any) -> None:
    """The promise stands in the shares; the others' shares of other resources are untouched."""
    cluster.node(cpu=10, memory="10Gi")
    cluster.queue("vast", guarantee={"resource": {"cpu": 12}})
    cluster.queue("plain")
    cluster.pod("p", {"memory": "1Gi"}, queue="plain")
    cluster.settle()
    assert cluster.deserved("vast") == {"cpu": 12_000}
    assert cluster.deserved("plain") == {"memory": 1 << 30}


def test_strict_order_everywhere_is_told_for_every_queue(cluster_of: Any) -> None:
    cluster = cluster_of(QueuePolicy(strict_fifo=True))
    cluster.settle()
    assert all(entry["strict_fifo"] for entry in cluster.entitled.values())


def test_what_is_asked_about_a_queue_is_answered(cluster: Any) -> None:
    cluster.node(cpu=10)
    cluster.pod("p", {"cpu": 3})
    cluster.settle()
    answer = cluster.core.query("queue", {"name": "default"})
    assert answer == {"request": {"cpu": 3000}, "allocated": {}, "deserved": {"cpu": 3000}}


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["pod", "bind", "finish", "remove", "group", "queue"]), st.integers(0, 5), st.integers(0, 3)
    ),
    max_size=40,
)


@given(STEPS)
@settings(max_examples=60, deadline=None)
def test_whatever_happens_the_books_are_those_of_a_fresh_start(
    cluster_of: Any, steps: list[tuple[str, int, int]]
) -> None:
    """Incremental sums and shares equal those of a core that reads the final state at once."""
    cluster = cluster_of()
    cluster.node(cpu=10)
    for verb, number, other in steps:
        step(cluster, verb, number, other)
        cluster.settle()
        cluster.now += 1500
    cluster.settle()
    live = cluster.entitled
    cluster.restart()
    cluster.settle()
    assert {name: entry["deserved"] for name, entry in live.items()} == {
        name: entry["deserved"] for name, entry in cluster.entitled.items()
    }
    assert isinstance(cluster.core, QueueCore)


def step(cluster: Any, verb: str, number: int, other: int) -> None:
    from kube import Key

    pod = Key("Pod", "default", f"p-{number}")
    if verb == "pod" and cluster.store.get(pod) is None:
        cluster.pod(
            pod.name, {"cpu": other + 1}, **({"group": f"g-{other}"} if number % 2 else {"queue": f"q-{other}"})
        )
    elif verb == "group":
        cluster.group(f"g-{other}", minMember=number, queue=f"q-{number % 3}")
    elif verb == "queue":
        cluster.queue(f"q-{other}", weight=number + 1)
    elif verb in ("bind", "finish", "remove") and cluster.store.get(pod) is not None:
        act = {"bind": cluster.bind, "finish": lambda name: cluster.phase(name, "Succeeded")}
        act.get(verb, lambda name: cluster.remove("Pod", name))(pod.name)
