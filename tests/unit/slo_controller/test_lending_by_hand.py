"""Batch and mid resources of one node in many situations, each with its sum worked out by hand.

The node has 100 cores and 120G, 35 % of both are margin unless a row says otherwise; the system uses 7 cores and 12G. The pods:
``web`` asks for 20 cores and 20G and uses 11 and 11G, ``db`` asks for 20 and 40G and uses 14 and 30G.
"""

from typing import Any

import pytest

from kube import Key, from_manifest
from slo_controller.domain.configuration.parts import COLOCATION
from slo_controller.domain.configuration.strategy import Strategy
from slo_controller.domain.lending.computing import compute
from slo_controller.domain.lending.measured import Measured
from slo_controller.domain.lending.rule import rule_on
from slo_controller.domain.lending.tenants import Tenant
from slo_controller.domain.lending.terms import NOTHING, Use

G = 10**9
ANNOTATION = "node.koordinator.sh/reservation"


def use(cpu: float, memory: int) -> Use:
    return Use(round(cpu * 1000), memory * G)


class Toy:
    """The node, its pods and what was measured, before a row changes something."""

    def __init__(self) -> None:
        self.capacity, self.given = {"cpu": "100", "memory": "120G"}, {"cpu": "100", "memory": "120G"}
        self.annotations: dict[str, str] = {}
        self.labels: dict[str, str] = {}
        self.rule: dict[str, Any] = {"cpuReclaimThresholdPercent": 65, "memoryReclaimThresholdPercent": 65}
        self.pods = {"web": ("prod", "LS", use(20, 20)), "db": ("prod", "LS", use(20, 40))}
        self.used = {"web": use(11, 11), "db": use(14, 30)}
        self.seen: dict[str, Any] = {"node": use(32, 53), "system": use(7, 12)}

    def lent(self) -> dict[str, int]:
        status = {"capacity": self.capacity, "allocatable": self.given}
        metadata = {"name": "n", "annotations": self.annotations, "labels": self.labels}
        node = from_manifest({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status})
        rule = rule_on(node, Strategy({**COLOCATION, "enable": True, **self.rule}))
        tenants = [Tenant(Key("Pod", "default", name), *one) for name, one in self.pods.items()]
        used = {Key("Pod", "default", name): one for name, one in self.used.items()}
        found = compute(node, rule, Measured(0, pods=used, **self.seen), tenants, NOTHING).amounts
        return {name.partition("/")[2]: amount for name, amount in found.items()}


@pytest.fixture
def node() -> Toy:
    return Toy()


def batch(cpu: float, memory: float) -> dict[str, int]:
    return {"batch-cpu": round(cpu * 1000), "batch-memory": round(memory * G)}


def is_batch(toy: Toy, cpu: float, memory: float) -> bool:
    return {name: amount for name, amount in toy.lent().items() if name.startswith("batch")} == batch(cpu, memory)


@pytest.mark.parametrize(
    ("rule", "cpu", "memory"),
    [
        ({}, 33, 25),  # 100-35-7-25, 120-42-12-41
        ({"cpuReclaimThresholdPercent": 60, "memoryReclaimThresholdPercent": 65}, 28, 25),  # the defaults
        ({"cpuReclaimThresholdPercent": 100, "memoryReclaimThresholdPercent": 100}, 68, 67),
        ({"cpuReclaimThresholdPercent": 150, "memoryReclaimThresholdPercent": 120}, 118, 91),
        ({"cpuReclaimThresholdPercent": 30, "memoryReclaimThresholdPercent": 40}, 0, 0),  # -2, -5
        ({"memoryCalculatePolicy": "request"}, 33, 18),  # 120-42-60, whatever the system uses
        ({"memoryCalculatePolicy": "maxUsageRequest"}, 33, 6),  # 120-42-12-(20+40)
        ({"cpuCalculatePolicy": "maxUsageRequest"}, 18, 25),  # 100-35-7-(20+20)
        ({"batchCPUThresholdPercent": 30}, 30, 25),
        ({"batchCPUThresholdPercent": 33, "batchMemoryThresholdPercent": 20}, 33, 24),
        ({"batchCPUThresholdPercent": 0}, 0, 25),
    ],
)
def test_policies_thresholds_and_caps(node: Toy, rule: dict[str, Any], cpu: float, memory: float) -> None:
    node.rule |= rule
    assert is_batch(node, cpu, memory)


@pytest.mark.parametrize(
    ("annotation", "given", "rule", "cpu", "memory"),
    [
        ('{"resources": {"cpu": "4", "memory": "20G"}}', {}, {}, 33, 17),  # 7 > 4 used, 20 > 12 used
        ('{"reservedCPUs": "0-19"}', {}, {}, 20, 25),
        ('{"resources": {"cpu": "30"}, "reservedCPUs": "0-9"}', {}, {}, 30, 25),  # the list beats the amount
        ("", {"cpu": "85", "memory": "100G"}, {}, 25, 17),  # the kubelet keeps 15 and 20
        ('{"resources": {"cpu": "18", "memory": "15G"}}', {"cpu": "85", "memory": "100G"}, {}, 22, 17),
        # By request the system does not count, what is reserved does.
        ('{"resources": {"memory": "5G"}}', {}, {"memoryCalculatePolicy": "request"}, 33, 13),
        ('{"resources": {"memory": "5G"}}', {"memory": "110G"}, {"memoryCalculatePolicy": "request"}, 33, 8),
    ],
)
def test_what_is_reserved(
    node: Toy, annotation: str, given: dict[str, str], rule: dict[str, Any], cpu: float, memory: float
) -> None:
    node.annotations, node.given, node.rule = {ANNOTATION: annotation}, node.given | given, node.rule | rule
    assert is_batch(node, cpu, memory)


@pytest.mark.parametrize(
    ("pods", "used", "cpu", "memory"),
    [
        ({"more": ("mid", "LS", use(5, 5))}, {"more": use(4, 3)}, 29, 22),
        ({"more": ("batch", "LS", use(5, 5))}, {"more": use(4, 3)}, 33, 25),
        ({"more": ("free", "BE", use(5, 5))}, {"more": use(4, 3)}, 33, 25),
        ({"more": ("prod", "LS", use(5, 5))}, {}, 28, 20),  # not measured yet: its request
        ({"more": ("prod", "LSE", use(10, 10))}, {"more": use(4, 5)}, 23, 20),  # its cpus by request
        ({"more": ("prod", "LSE", use(10, 10))}, {}, 23, 15),
        ({"more": ("prod", "LSR", use(10, 10))}, {"more": use(4, 5)}, 29, 20),
        ({}, {"gone": use(9, 9)}, 33, 25),  # what was measured of pods that are gone counts no more
    ],
)
def test_who_counts_and_with_what(node: Toy, pods: Any, used: Any, cpu: float, memory: float) -> None:
    node.pods, node.used = node.pods | pods, node.used | used
    assert is_batch(node, cpu, memory)


@pytest.mark.parametrize(
    ("cpu_policy", "memory_policy", "cpu", "memory"),
    [("usage", "usage", 23, 20), ("maxUsageRequest", "request", 3, 8), ("maxUsageRequest", "maxUsageRequest", 3, 0)],
)
def test_a_pod_that_starts_counts_under_every_policy(
    node: Toy, cpu_policy: str, memory_policy: str, cpu: float, memory: float
) -> None:
    """It asks for 10 cores and 5G: cpu 33-10 or 18-15, of which 5 by one more that is measured at more than it asked for."""
    node.pods["new"] = ("prod", "LS", use(10, 5))
    if cpu_policy == "maxUsageRequest":
        node.pods["eager"], node.used["eager"] = ("prod", "LS", use(1, 5)), use(5, 6)
    node.rule |= {"cpuCalculatePolicy": cpu_policy, "memoryCalculatePolicy": memory_policy}
    assert is_batch(node, cpu, memory)


def test_programs_that_are_no_pods_count_with_the_system_before_it_is_compared_with_what_is_reserved(node: Toy) -> None:
    node.seen["applications"] = use(3, 6)
    assert is_batch(node, 30, 19)
    node.annotations[ANNOTATION] = '{"resources": {"cpu": "9", "memory": "20G"}}'
    assert is_batch(node, 30, 17)  # 7+3 > 9, 12+6 < 20


@pytest.mark.parametrize(
    ("rule", "reclaimable", "cpu", "memory"),
    [
        ({}, use(10, 15), 10, 15),
        ({}, use(90, 100), 68, 67),  # no more than what nobody uses: 100-32, 120-53
        ({}, NOTHING, 0, 0),
        ({"midCPUThresholdPercent": 8, "midMemoryThresholdPercent": 10}, use(10, 15), 8, 12),
        # Not asked for: 100-7-40 = 53 and 120-12-60 = 48.
        ({"midUnallocatedPercent": 50}, use(10, 15), 36.5, 39),
        ({"midUnallocatedPercent": 100, "midMemoryThresholdPercent": 50}, use(10, 15), 63, 60),
        ({"midStaticCPUReservedPercent": 20, "midStaticMemoryReservedPercent": 30}, NOTHING, 20, 36),
        ({"midStaticCPUReservedPercent": 20, "midCPUThresholdPercent": 15}, use(10, 15), 15, 15),
    ],
)
def test_mid_resources(node: Toy, rule: dict[str, Any], reclaimable: Use, cpu: float, memory: float) -> None:
    node.rule |= rule
    node.seen["reclaimable"] = reclaimable
    found = node.lent()
    assert (found["mid-cpu"], found["mid-memory"]) == (round(cpu * 1000), round(memory * G))


def test_of_what_is_not_asked_for_the_larger_of_system_and_reserved_is_taken_off(node: Toy) -> None:
    """100-20-40 = 40 cores, half of them 20; 120-12-60 = 48G, half of them 24."""
    node.rule["midUnallocatedPercent"], node.seen["reclaimable"] = 50, NOTHING
    node.annotations[ANNOTATION] = '{"reservedCPUs": "0-19"}'
    found = node.lent()
    assert (found["mid-cpu"], found["mid-memory"]) == (20_000, 24 * G)
    node.pods["more"] = ("mid", "LS", use(10, 10))  # only what prod pods ask for counts
    assert node.lent()["mid-cpu"] == 20_000


def test_cores_that_do_more_are_lent_as_more_after_the_cap(node: Toy) -> None:
    """30 % of 100 cores, each counted for 1.2; memory and mid-cpu are what they are."""
    node.annotations["node.koordinator.sh/cpu-normalization-ratio"] = "1.20"
    node.rule["batchCPUThresholdPercent"], node.seen["reclaimable"] = 30, use(10, 15)
    found = node.lent()
    assert (found["batch-cpu"], found["batch-memory"], found["mid-cpu"]) == (36_000, 25 * G, 10_000)
