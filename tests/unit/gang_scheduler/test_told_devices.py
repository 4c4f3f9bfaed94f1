"""What running pods say of their devices, written by anybody: the books balance, whatever it is."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kube import Key

GPU, SHARED = "nvidia.com/gpu", {"koordinator.sh/gpu-core": 50, "koordinator.sh/gpu-memory-ratio": 50}
STRICT = {"node.koordinator.sh/numa-topology-policy": "SingleNUMANode"}
INVENTORY = {
    "gpus": [{"index": index, "memory": "16Gi", "numa": index // 2} for index in range(4)],
    "numa": [{"cpus": "0-3", "memory": "16Gi"}, {"cpus": "4-7", "memory": "16Gi"}],
}
KINDS: list[dict[str, Any]] = [
    {"requests": {GPU: 1}},
    {"requests": {GPU: 2}},
    {"requests": SHARED},
    {"requests": {"koordinator.sh/gpu": 200}},
    {"requests": {"koordinator.sh/rdma": 50}},
    {"cpu": 2, "memory": "1Gi", "labels": {"koordinator.sh/qosClass": "LSR"}},
    {"cpu": 1},
]
NUMBERS = st.one_of(
    st.integers(-2, 9), st.sampled_from(["0", "x", None, 1.5, 10**30, float("inf"), float("nan"), [], {}])
)
AMOUNTS = st.dictionaries(st.sampled_from(["koordinator.sh/gpu-core", "cpu"]), st.sampled_from(["50", "-5", "x", None]))
DEVICE = st.one_of(st.fixed_dictionaries({"minor": NUMBERS}, optional={"resources": AMOUNTS}), NUMBERS)
CARDS = st.one_of(
    st.dictionaries(
        st.sampled_from(["gpu", "rdma", GPU, "koordinator.sh/gpu", "koordinator.sh/rdma", "migSlices"]),
        st.one_of(st.lists(DEVICE, max_size=3), DEVICE),
        max_size=2,
    ).map(json.dumps),
    st.sampled_from(["", "null", "[]", "x", '"gpu"', "[" * 5000]),
)
PLACES = st.dictionaries(
    st.sampled_from(["cpuset", "numaNodeResources", "migSlices"]),
    st.one_of(
        st.sampled_from(["0-3", "9-12", "-1", "0-3,0-3", "0-99999999999", None, 5]),
        st.lists(st.one_of(NUMBERS, st.fixed_dictionaries({"node": NUMBERS, "resources": AMOUNTS})), max_size=2),
    ),
    max_size=2,
).map(json.dumps)
TOLD = st.fixed_dictionaries(
    {},
    optional={
        "scheduling.koordinator.sh/device-allocated": CARDS,
        "tidegate.dev/devices": CARDS,
        "scheduling.koordinator.sh/resource-status": PLACES,
    },
)
STEPS = st.lists(
    st.tuples(st.sampled_from(["wait", "run", "run", "delete", "node", "tell"]), st.integers(0, 15), TOLD), max_size=8
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_the_books_balance_whatever_pods_say_of_their_devices(
    new_toy: Any, steps: list[tuple[str, int, dict[str, str]]]
) -> None:
    """The audit compares them with rebuilt ones. Two pods may say that they have the same: that is not the scheduler's doing."""
    toy = new_toy(checks=False)
    for name, labels in (("n1", STRICT), ("n2", {})):
        node(toy, name, labels)
    for number, (step, choice, told) in enumerate(steps):
        kind, on = dict(KINDS[choice % len(KINDS)]), f"n{1 + choice % 2}"
        pods = sorted(item.name for item in toy.store.of_kind("Pod").values())
        if step in ("wait", "run"):
            toy.pods(f"p{number}", node=on if step == "run" else "", annotations=told, **kind)
        elif step == "node":
            node(toy, on, STRICT if choice % 3 else {})
        elif pods and step == "delete":
            toy.delete(Key("Pod", "default", pods[choice % len(pods)]))
        elif pods:
            old = toy.pod(pods[choice % len(pods)])
            new = old.changed(metadata={**old.metadata, "annotations": {**old.annotations, **told}})
            toy.fold([toy.store.put(new)])
        assert toy.core.check() == []
        toy.settle()
        assert toy.core.check() == []


def node(toy: Any, name: str, labels: dict[str, str]) -> None:
    amounts = {
        GPU: 4,
        "koordinator.sh/gpu-core": 400,
        "koordinator.sh/gpu-memory-ratio": 400,
        "koordinator.sh/rdma": 200,
    }
    toy.node(name, cpu=8, memory="32Gi", labels=labels, inventory=INVENTORY, **amounts)
