"""Whatever users write into annotations, rules and nodes: it holds as far as it makes sense, and nothing breaks."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.domain.colocation import pods as words
from node_agent.domain.colocation.core import Kept, enforce
from node_agent.domain.colocation.machine import CPU_TOPOLOGY, INVENTORY, RESERVATION, SYSTEM_CPUS, machine_of
from node_agent.domain.colocation.node_slo import node_slo
from node_agent.domain.colocation.pods import node_pod
from node_agent.domain.colocation.restoration import to_write
from node_agent.domain.colocation.samples import Sample, Use
from node_agent.domain.colocation.situation import Situation

READ = {
    words.CPU_BURST: ("policy", "cpuBurstPercent", "cfsQuotaBurstPercent", "cfsQuotaBurstPeriodSeconds"),
    words.MEMORY_QOS: ("policy", "enable", "minLimitPercent", "throttlingPercent"),
    words.BLKIO_QOS: ("enable", "blocks", "name", "ioCfg", "readBPS"),
    words.RESOURCE_STATUS: ("cpuset", "numaNodeResources", "node"),
    words.EVICTION_POLICY: ("x",),
    words.EVICTION_COST: ("x",),
    words.EVICTION_PRIORITY: ("x",),
    INVENTORY: ("numa", "cpus", "index"),
    RESERVATION: ("resources", "cpu", "reservedCPUs"),
    SYSTEM_CPUS: ("cpuset", "cpusetExclusive"),
    CPU_TOPOLOGY: ("detail", "id", "core", "node"),
}
PARTS = {
    "resourceUsedThresholdWithBE": (
        "enable",
        "cpuSuppressPolicy",
        "cpuSuppressThresholdPercent",
        "cpuEvictTimeWindowSeconds",
    ),
    "cpuBurstStrategy": ("policy", "cpuBurstPercent"),
    "resourceQOSStrategy": (
        "lsClass",
        "beClass",
        "memoryQOS",
        "blkioQOS",
        "cpuQOS",
        "resctrlQOS",
        "enable",
        "blocks",
        "name",
    ),
    "hostApplications": ("name", "qos", "cgroupPath", "base", "relativePath"),
}
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-10, 10**12), st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "auto", "cpuset", "cfsQuota", "0-3", "1,x", "Kubepods", "5", "vda"]),
)  # fmt: skip


def nonsense(keys: tuple[str, ...]) -> st.SearchStrategy[Any]:
    """JSON of any form, with the keys that are read there."""
    return st.recursive(
        LEAVES,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(keys), inner, max_size=4)),
        max_leaves=10,
    )


@settings(max_examples=300)
@given(
    said=st.fixed_dictionaries({name: nonsense(keys).map(json.dumps) for name, keys in READ.items()}),
    slo=st.fixed_dictionaries({}, optional={name: nonsense(keys) for name, keys in PARTS.items()}),
)
def test_nonsense_breaks_nothing(said: dict[str, str], slo: dict[str, Any]) -> None:
    pods = [
        node_pod({
            "metadata": {"uid": qos, "name": qos, "labels": {words.QOS_LABEL: qos, words.SUB_PRIORITY: "x"}, "annotations": said},
            "spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "1", "memory": "nonsense"}}}]},
        })
        for qos in ("LS", "BE", "LSE", "SYSTEM", "?")
    ]  # fmt: skip
    node = {"metadata": {"annotations": said}, "status": {"capacity": {"cpu": "4", "memory": "x"}}}
    machine = machine_of(node, (), {"vda": "1:0"})
    sample = Sample(
        1000, Use(3000, 5), {pod.uid: Use(500, 1) for pod in pods}, {"": Use(1, 1)}, frozenset({("LS", "main")})
    )
    kept = Kept()
    for now in (1000, 2000):
        done = enforce(Situation(now, node_slo(slo), machine, {pod.uid: pod for pod in pods}, sample, 10_000), kept)
        kept = done.kept
        to_write(done.knobs, done.knobs, {}, machine)
