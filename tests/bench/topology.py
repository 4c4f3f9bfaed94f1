"""How long a decision takes for a gang of 1,000 pods in 100 sub-groups, each tied to one of 100 racks of 10 nodes.

The plain rule tries every rack in turn; it stands here as it is written in the domain's documents, to show what leaving out
racks without room is worth. Measures, never asserts.
"""

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from tests.bench.figures import Figure, at_most
from tests.bench.scheduler_core import CREATED, GROUP, NOW, node, pod, template

from gang_scheduler.domain.columns.vectors import Mask
from gang_scheduler.domain.core import SchedulerCore
from gang_scheduler.domain.topology.hyper_nodes import HyperNodes, Topology
from gang_scheduler.domain.topology.network_domains import Need
from kube import Decision, Event, Key, Manifest, Object

RACKS, NODES_PER_RACK, SUB_GROUPS, SUB_GROUP_SIZE = 100, 10, 100, 10
HARD_RACK: Manifest = {"mode": "hard", "highestTierAllowed": 1}


def racks() -> Iterator[Object]:
    """The HyperNodes: 100 racks under one spine."""
    names = [f"rack-{number:03}" for number in range(RACKS)]
    for number, name in enumerate(names):
        first = number * NODES_PER_RACK
        below = [f"node-{index:05}" for index in range(first, first + NODES_PER_RACK)]
        yield _hyper_node(name, 1, "Node", below)
    yield _hyper_node("spine", 2, "HyperNode", names)


def _hyper_node(name: str, tier: int, kind: str, members: list[str]) -> Object:
    listed = [{"type": kind, "selector": {"exactMatch": {"name": member}}} for member in members]
    key = Key("HyperNode.topology.volcano.sh", "", name)
    return Object(key, f"uid-{name}", {}, {"spec": {"tier": tier, "members": listed}}, {})


def gang() -> list[Object]:
    """One gang; every sub-group fills a rack of which one node may be in use already."""
    policy = {
        "name": "part",
        "subGroupSize": SUB_GROUP_SIZE,
        "minSubGroups": SUB_GROUPS,
        "labelSelector": {},
        "matchLabelKeys": ["part"],
        "networkTopology": HARD_RACK,
    }
    spec = {"minMember": SUB_GROUPS * SUB_GROUP_SIZE, "queue": "default", "subGroupPolicy": [policy]}
    spec["networkTopology"] = {"mode": "hard", "highestTierAllowed": 2}
    group = Object(
        Key(GROUP, "default", "g"), "uid-g", {"creationTimestamp": CREATED}, {"spec": spec}, {"phase": "Inqueue"}
    )
    body = template(cpu=40, memory="8Gi")
    return [group, *(_member(number, body) for number in range(SUB_GROUPS * SUB_GROUP_SIZE))]


def _member(number: int, body: Manifest) -> Object:
    plain = pod(f"g-{number:04}", body, "g")
    labels = {**plain.labels, "part": str(number // SUB_GROUP_SIZE)}
    return plain.changed(metadata={**plain.metadata, "labels": labels})


def core() -> SchedulerCore:
    """A core that knows the nodes, the racks and the gang, and has not decided yet."""
    made = SchedulerCore()
    nodes = [node(f"node-{number:05}", 64, 0) for number in range(RACKS * NODES_PER_RACK)]
    made.fold([Event(None, item) for item in (*nodes, *racks())], NOW)
    made.hear("queue_manager", Decision("EntitlementsComputed", Key("", "", ""), payload={"queues": {"default": {}}}))
    made.fold([Event(None, item) for item in gang()], NOW)
    return made


def plain_choices(
    self: HyperNodes,
    topology: Topology,
    fence: Mask | None,
    held: Sequence[int],
    needs: Sequence[Need],
    rows: list[int],
    *,
    fullest: bool,
) -> Iterator[Mask]:
    """Every domain that is allowed, by the rule in words: lowest tier, fullest, name. None is left out for want of room."""
    table = self.table

    def fill(nodes: Mask) -> float:
        has, used = (amounts[rows][:, nodes].sum(axis=1) for amounts in (table.allocatable, table.used))
        return round(float((used / np.maximum(has, 1)).sum()), 9) * (-1 if fullest else 1)

    allowed = [item for item in self.domains().domains if topology.tier is None or item.tier <= topology.tier]
    allowed = [item for item in allowed if all(item.nodes[slot] for slot in held)]
    for item in sorted(allowed, key=lambda item: (item.tier, fill(item.nodes), item.name)):
        yield item.nodes if fence is None else item.nodes & fence
    if not topology.hard:
        yield np.ones(table.size, np.bool_) if fence is None else fence


def cpu_seconds(made: SchedulerCore) -> tuple[float, int]:
    """CPU seconds of one decision, and how many pods it binds."""
    start = time.process_time()
    decisions = made.decide(NOW, frozenset())
    return time.process_time() - start, sum(len(decision.mutations) for decision in decisions)


def measure(rounds: int = 3) -> tuple[float, float]:
    """The best of some rounds, as it is and without leaving out racks; CPU seconds."""
    fast = min(cpu_seconds(core())[0] for _ in range(rounds))
    kept: Callable[..., Iterator[Mask]] = HyperNodes.choices
    HyperNodes.choices = plain_choices  # type: ignore[method-assign]
    try:
        return fast, cpu_seconds(core())[0]
    finally:
        HyperNodes.choices = kept  # type: ignore[method-assign]


async def topology() -> list[Figure]:
    """The figures for the table."""
    fast, plain = measure()
    what = f"{SUB_GROUPS * SUB_GROUP_SIZE} pods in {SUB_GROUPS} sub-groups on {RACKS} racks: decide, CPU time"
    return [at_most(what, 1000 * fast, "ms", 200, f"every rack tried: {1000 * plain:,.0f} ms", 1000 * plain)]


if __name__ == "__main__":
    print("decide: {:.3f} s CPU; every rack tried: {:.3f} s CPU".format(*measure()))
