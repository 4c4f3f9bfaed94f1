"""What prod pods ask for and are not expected to use: learnt once a minute, remembered, and nothing of what is not known for a day."""

from kube import Key
from slo_controller.domain.lending.measured import measured
from slo_controller.domain.prediction.histogram import CPU, MEMORY
from slo_controller.domain.prediction.kills import Kill
from slo_controller.domain.prediction.past_use import PastUse, by_container
from slo_controller.domain.prediction.workloads import Workload, workload_of

MINUTE, HOUR = 60_000, 3_600_000


def live(toy, hours: int, cpu: str = "2", memory: str = "1G", pod: str = "web") -> None:
    """Samples for so many hours, one each ten minutes."""
    for _ in range(6 * hours):
        toy.use(system=("1", "1G"), **{pod: (cpu, memory)})
        toy.advance(10 * MINUTE)


def expected(amount: int, scale) -> int:
    return scale.end(scale.bucket(amount)) * 110 // 100


def test_after_a_day_what_a_pod_asks_for_and_does_not_use_may_be_lent_to_mid_work(toy) -> None:
    toy.node()
    toy.pod("web", cpu="20", memory="40G")
    live(toy, 23)
    assert (toy.lent("mid-cpu"), toy.lent("mid-memory")) == (0, 0)
    live(toy, 2)
    together = 20_000 - expected(2_000, CPU) - expected(1_000, CPU)
    assert toy.lent("mid-cpu") == together
    assert toy.lent("mid-memory") == 40 * 10**9 - 2 * expected(10**9, MEMORY)
    toy.restart()
    assert toy.advance(MINUTE) == []


def test_a_pod_of_a_workload_that_is_known_need_not_be_known_itself(toy) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": True}
    toy.node()
    toy.pod("web-0", cpu="20", metadata={"ownerReferences": [owner]})
    live(toy, 25, pod="web_0")
    before = toy.lent("mid-cpu")
    toy.pod("web-1", cpu="20", metadata={"ownerReferences": [owner]})
    toy.pod("other", cpu="20")
    toy.advance(3 * MINUTE)
    assert toy.lent("mid-cpu") > before
    known = toy.core._memory.past
    assert known.expected(Workload("default", "Deployment.apps", "web")) is not None
    assert known.expected(Workload("default", "Pod", "other")) is None


def test_a_node_that_others_measure_by_prediction_is_believed(toy) -> None:
    toy.node()
    toy.pod("web", cpu="20")
    item = toy.use(web=("2", "1G"))
    status = {**item.status, "prodReclaimableMetric": {"resource": {"resources": {"cpu": "7", "memory": "3G"}}}}
    toy.put({**item.manifest(), "status": status})
    toy.settle()
    assert (toy.lent("mid-cpu"), toy.lent("mid-memory")) == (7_000, 3 * 10**9)


def test_nothing_is_remembered_where_nobody_asks(make_toy) -> None:
    toy = make_toy()
    toy.node()
    toy.pod("web")
    live(toy, 1)
    assert toy.private is None and toy.core.deadline() is None


def test_what_is_gone_for_long_is_forgotten(toy) -> None:
    toy.node()
    toy.pod("web")
    live(toy, 1)
    toy.remove(Key("Pod", "default", "web"))
    toy.now += 9 * 24 * HOUR
    toy.use()
    toy.settle()
    past = toy.core._memory.past
    assert past.containers == {} and set(past.nodes) == {"n"}
    toy.remove(Key("NodeMetric.slo.koordinator.sh", "", "n"))
    toy.remove(Key("Node", "", "n"))
    toy.node("m")
    toy.use("m")
    toy.advance(MINUTE)
    assert set(past.nodes) == {"m"} == set(toy.core._memory.lows.by_node)


def test_what_was_seen_only_for_a_while_is_remembered_for_as_long(toy) -> None:
    """Or for an hour, if it was less: batch pods come and go."""
    toy.node()
    toy.pod("short"), toy.pod("long")
    toy.use(short=("1", "1G"), long=("1", "1G"))
    toy.advance(MINUTE)
    live(toy, 3, pod="long")
    known = {Workload("default", "Pod", name) for name in ("short", "long")}
    past = toy.core._memory.past
    assert set(past.containers) == known - {Workload("default", "Pod", "short")}
    for name in ("short", "long"):
        toy.remove(Key("Pod", "default", name))
    for hours, left in ((2, 1), (1, 0)):
        toy.now += hours * HOUR
        toy.use()
        toy.advance(MINUTE)
        assert len(past.containers) == left


def test_what_was_learnt_of_a_kill_is_remembered_for_days() -> None:
    past = PastUse()
    workload = Workload("default", "Deployment.apps", "web")
    past.learn_kill(workload, Kill(Key("Pod", "default", "web"), "main", HOUR, 1 << 30))
    past.forget(8 * 24 * HOUR, [])
    assert past.containers[workload]["main"].killed_at == HOUR
    past.forget(9 * 24 * HOUR, [])
    assert past.containers == {}


def test_the_use_of_a_pod_is_shared_by_what_its_containers_ask_for_unless_they_are_measured(toy) -> None:
    containers = [
        {"name": "big", "resources": {"requests": {"cpu": "3", "memory": "1G"}}},
        {"name": "small", "resources": {"requests": {"cpu": "1", "memory": "1G"}}},
    ]
    pod = toy.pod("web", containers=containers)
    item = toy.use(web=("2", "4G"))
    shares = by_container(pod, measured(item), pod.key)
    assert {name: (one.cpu, one.memory) for name, one in shares.items()} == {
        "big": (1_500, 2 * 10**9),
        "small": (500, 2 * 10**9),
    }
    item.status["podsMetric"][0]["containers"] = [{"name": "big", "usage": {"resources": {"cpu": "2", "memory": "1"}}}]
    assert {name: one.cpu for name, one in by_container(pod, measured(item), pod.key).items()} == {"big": 2_000}


def test_a_pod_of_a_replica_set_belongs_to_its_deployment(toy) -> None:
    def owner(kind: str, name: str) -> list[dict[str, object]]:
        return [{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": True}]

    metadata = {"name": "web-1", "namespace": "default", "ownerReferences": owner("Deployment", "web")}
    toy.put({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata})
    pod = toy.pod("web-1-a", metadata={"ownerReferences": owner("ReplicaSet", "web-1")})
    assert workload_of(pod, toy.store) == Workload("default", "Deployment.apps", "web")
    other = toy.pod("o", metadata={"ownerReferences": owner("ReplicaSet", "gone")})
    assert workload_of(other, toy.store) == Workload("default", "ReplicaSet.apps", "gone")
