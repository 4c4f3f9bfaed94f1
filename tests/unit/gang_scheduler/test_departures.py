"""Pods that leave the books, and come back, all at once: the books are as if each did by itself."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gang_scheduler.domain.cluster import Cluster
from gang_scheduler.domain.evictions.departure import Departures
from gang_scheduler.domain.pods.pod_record import PodRecord

QUIET = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
PARTS: list[dict[str, Any]] = [
    {"cpu": 1},
    {"cpu": 1, "memory": "1Gi"},
    {"requests": {"nvidia.com/gpu": 1}},
    {"cpu": 1, "tolerations": [{"key": "other"}]},
    {"cpu": 1, "labels": {"app": "a"}},
]
PODS = st.lists(
    st.tuples(st.sampled_from(range(len(PARTS))), st.sampled_from(["n0", "n1"]), st.sampled_from(["qa", "qb"])),
    min_size=1,
    max_size=8,
)


def books(cluster: Cluster) -> Any:
    """All that the books say of what is taken, and who takes it."""
    room = cluster.room
    held = {slot: sorted(node.held) for slot, node in room.table.devices.nodes.items()}
    return (
        room.table.used.tolist(),
        {queue: {name: used for name, used in amounts.items() if used} for queue, amounts in room.ledger.used.items()},
        {shape.index: count for shape, count in room.foresight.census.counts.items()},
        room.foresight.census.with_cards,
        room.table.devices.free.whole.tolist(),
        room.table.devices.free.core.tolist(),
        held,
        sorted((record.key, record.slot, record.charged) for record in cluster.pods.values() if record.slot >= 0),
    )


def one_by_one(cluster: Cluster, leaving: list[PodRecord]) -> None:
    """The plain rule."""
    for record in leaving:
        cluster.room.vacate([record])


@QUIET
@given(PODS, st.booleans(), st.booleans(), st.data())
def test_many_leave_and_come_back_as_if_each_did_by_itself(
    new_toy: Any, pods: list[tuple[int, str, str]], reserved: bool, apart: bool, chance: st.DataObject
) -> None:
    toy = new_toy(queues={"qa": {}, "qb": {}})
    for node in ("n0", "n1"):
        toy.node(node, cpu=16, memory="64Gi", **{"nvidia.com/gpu": 8})
    if reserved:
        toy.reservation("r", cpu=2, allocateOnce=False)
    toy.entitle()
    if reserved:
        toy.settle()
    for number, (kind, node, queue) in enumerate(pods):
        parts = dict(PARTS[kind])
        owner = reserved and "labels" in parts
        toy.pods(f"p{number}", queue=queue, node="" if owner else node, **parts)
    if apart:
        term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "kubernetes.io/hostname"}
        rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        toy.pods("shy", cpu=1, queue="qa", affinity=rule)
    toy.settle()
    cluster = toy.core.cluster
    placed = [record for record in cluster.pods.values() if record.slot >= 0]
    leaving = [record for record in placed if chance.draw(st.booleans())]
    before = books(cluster)
    departures = Departures(cluster.room)
    departures.take(leaving)
    gone = books(cluster)
    departures.undo()
    assert books(cluster) == before
    one_by_one(cluster, leaving)
    assert books(cluster) == gone


def test_a_promise_is_kept_from_the_moment_in_which_it_was_decided(toy: Any) -> None:
    """While it was planned nothing was held back; that is over with the pass."""
    toy.node("n", cpu=2)
    toy.group("old", 1)
    toy.pods("old", cpu=2, group="old")
    toy.settle()
    toy.group("new", 1)
    toy.pods("new", cpu=2, group="new", priority=5)
    for number, decision in enumerate(toy.core.decide(toy.now, frozenset())):
        toy.core.assume(f"plan-{number}", decision)
    assert [unit[0].name for unit in toy.core.claims.kept()] == ["new"]
