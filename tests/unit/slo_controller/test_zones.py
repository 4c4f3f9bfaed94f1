"""Batch resources by NUMA node: pods where they were put, all else spread evenly, and together no more than the node."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kube import Key, Object, from_manifest
from slo_controller.domain.configuration.parts import COLOCATION
from slo_controller.domain.configuration.strategy import Strategy
from slo_controller.domain.lending.computing import compute
from slo_controller.domain.lending.measured import Measured
from slo_controller.domain.lending.rule import rule_on
from slo_controller.domain.lending.tenants import Tenant
from slo_controller.domain.lending.terms import NOTHING, Use
from slo_controller.domain.lending.zones import zoned

KEY = Key("NodeResourceTopology.topology.node.k8s.io", "", "n")
PLACED = "scheduling.koordinator.sh/resource-status"


def topology(*cpus: str) -> dict[str, Any]:
    zones = [
        {
            "name": f"node-{number}",
            "type": "Node",
            "resources": [{"name": name, "capacity": amount} for name, amount in (("cpu", cpu), ("memory", "50G"))],
        }
        for number, cpu in enumerate(cpus)
    ]
    api = {"apiVersion": "topology.node.k8s.io/v1alpha1", "kind": "NodeResourceTopology"}
    return {**api, "metadata": {"name": "n"}, "zones": zones}


def told(toy) -> list[int | None]:
    """batch-cpu of each zone."""
    zones = toy.store.objects[KEY].body["zones"]
    found = [{part["name"]: part.get("allocatable") for part in zone["resources"]} for zone in zones]
    return [int(one["kubernetes.io/batch-cpu"]) if "kubernetes.io/batch-cpu" in one else None for one in found]


def test_a_pod_counts_where_it_was_put_and_all_else_everywhere(toy) -> None:
    toy.put(topology("50", "50"))
    toy.node()
    placed = {"annotations": {PLACED: '{"numaNodeResources": [{"node": 1, "resources": {"cpu": "8"}}]}'}}
    toy.pod("there", metadata={"name": "there", "namespace": "default", **placed})
    toy.pod("anywhere")
    toy.use(system=("4", "0"), there=("8", "0"), anywhere=("6", "0"))
    toy.settle()
    assert told(toy) == [50_000 - 20_000 - 2_000 - 3_000, 50_000 - 20_000 - 2_000 - 3_000 - 8_000]
    assert sum(told(toy)) == toy.lent("batch-cpu")


def test_zones_that_come_later_are_told_at_once_and_cleared_with_the_lending(toy) -> None:
    toy.node()
    toy.use()
    toy.settle()
    toy.put(topology("50", "50"))
    toy.settle()
    assert told(toy) == [30_000, 30_000]
    toy.configure(colocation_config='{"enable": false}')
    toy.settle()
    assert told(toy) == [None, None]


def test_what_is_held_back_of_the_node_is_held_back_of_its_zones(toy) -> None:
    toy.put(topology("50", "50"))
    toy.node()
    toy.use(system=("40", "0"))
    toy.settle()
    toy.advance(4 * 60_000)
    toy.use(system=("20", "0"))
    toy.advance(1)
    assert told(toy) == [10_000, 10_000]


def test_zones_that_cannot_be_read_are_left_alone(toy) -> None:
    strange = {**topology("50"), "zones": [{"name": "socket-0"}, {"name": "node-x", "resources": []}]}
    toy.put(strange)
    toy.node()
    toy.use()
    toy.settle()
    assert toy.lent("batch-cpu") == 60_000 and toy.store.objects[KEY].body["zones"] == strange["zones"]


TENANTS = st.lists(
    st.tuples(st.integers(0, 40_000), st.none() | st.integers(0, 40_000), st.sampled_from(((), (0,), (1,), (0, 1)))),
    max_size=5,
)


@given(TENANTS, st.integers(0, 50_000), st.integers(0, 100_000))
def test_zones_are_never_below_zero_and_never_more_than_the_node(listed, system: int, written: int) -> None:
    node = from_manifest(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n"},
            "status": {"capacity": {"cpu": "100", "memory": "100G"}},
        }
    )
    tenants = [
        Tenant(Key("Pod", "d", f"p{at}"), "prod", "LS", Use(request, 0), zones)
        for at, (request, _, zones) in enumerate(listed)
    ]
    used = {one.key: Use(sample, 0) for one, (_, sample, _) in zip(tenants, listed, strict=True) if sample is not None}
    rule = rule_on(node, Strategy({**COLOCATION, "enable": True}))
    item: Object = from_manifest(topology("60", "40"))
    found = compute(node, rule, Measured(0, NOTHING, Use(system, 0), used), tenants, NOTHING, item)
    zones = zoned(item.body["zones"], found.zones, {"kubernetes.io/batch-cpu": written})
    amounts = [
        int(part["allocatable"]) for zone in zones for part in zone["resources"] if part["name"].endswith("batch-cpu")
    ]
    assert min(amounts) >= 0 and sum(amounts) <= written
