"""The gate's estimate of a topology and the scheduler's layout: what one says of a gang, the other one does."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kube import Event, Object
from queue_manager.domain.quotas.cluster_queue import Flavor
from queue_manager.domain.rooms.node_room import NodeRoom
from queue_manager.domain.rooms.topology_room import TopologyRoom
from queue_manager.domain.workloads.podset import merged, podset_of

LABEL = "kueue.x-k8s.io/queue-name"
ADMISSION = "tidegate.dev/admission"
PODSET = "kueue.x-k8s.io/podset-"
LEVELS = (BLOCK, RACK, HOST) = ("example.com/block", "example.com/rack", "kubernetes.io/hostname")
GRANT = json.dumps({"clusterQueue": "cq", "flavors": {"cpu": "f"}, "usage": {"cpu": 10**9}, "topology": LEVELS})


class Wanted(NamedTuple):
    """``pods`` of ``cpu`` each, in slices of ``size`` where ``sliced`` names a level."""

    pods: int
    cpu: int
    nearness: str
    level: str
    sliced: str
    size: int
    group: str

    def annotations(self) -> dict[str, str]:
        """What says so."""
        found = {f"{self.nearness}-topology": self.level}
        if self.sliced:
            found |= {"slice-required-topology": self.sliced, "slice-size": str(self.size)}
        if self.group:
            found["group-name"] = self.group
        return {PODSET + name: value for name, value in found.items()}


NODES = st.lists(
    st.tuples(st.sampled_from(("b0", "b1", "")), st.sampled_from(("r0", "r1", "")), st.integers(0, 5)),
    min_size=1,
    max_size=9,
)
SETS = st.lists(
    st.builds(
        Wanted,
        pods=st.integers(1, 6),
        cpu=st.integers(1, 3),
        nearness=st.sampled_from(("required", "preferred")),
        level=st.sampled_from(LEVELS),
        sliced=st.sampled_from(("", *LEVELS)),
        size=st.integers(1, 3),
        group=st.sampled_from(("", "together")),
    )
    | st.builds(
        Wanted,
        pods=st.integers(1, 6),
        cpu=st.integers(1, 3),
        nearness=st.just("unconstrained"),
        level=st.just("true"),
        sliced=st.sampled_from(("", *LEVELS)),
        size=st.integers(1, 3),
        group=st.just(""),
    ),
    min_size=1,
    max_size=3,
)


def build(toy: Any, nodes: Sequence[tuple[str, str, int]], sets: Sequence[Wanted], **container: Any) -> None:
    """The nodes, a pod of one CPU on the first of them, and the gang ``g`` whose roles are the sets.

    ``container`` is more that containers say.
    """
    toy.queues = {"default": {}, "cohort/cq": {}}
    for number, (block, rack, cpu) in enumerate(nodes):
        labels = {key: value for key, value in ((BLOCK, block), (RACK, rack and block + rack)) if value}
        toy.node(f"n{number}", cpu=cpu, labels=labels)
    if nodes[0][2]:
        toy.pods("used", cpu=1, node="n0")
    toy.put(
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "g", "labels": {LABEL: "lq"}, "annotations": {ADMISSION: GRANT}},
            "spec": {"minMember": sum(item.pods for item in sets)},
            "status": {"phase": "Inqueue"},
        }
    )
    for number, item in enumerate(sets):
        toy.pods(
            *(f"w{number}", item.pods),
            group="g",
            role=f"w{number}",
            labels={LABEL: "lq"},
            annotations=item.annotations(),
            schedulerName="tidegate",
            containers=[{"name": "c", "resources": {"requests": {"cpu": item.cpu}}, **container}],
        )


def estimate(items: Sequence[Object]) -> str:
    """Why the gate would keep the gang out, as the facts are; "" if it would let it in."""
    nodes = NodeRoom()
    for item in items:
        if item.key.kind == "Node":
            nodes.fold_node(Event(None, item))
        elif item.key.kind == "Pod":
            nodes.fold_pod(Event(None, item))
    members = [item for item in items if item.key.kind == "Pod" and not item.spec.get("nodeName")]
    found = [podset_of(item.annotations, item.spec, 1, item.annotations["volcano.sh/task-spec"]) for item in members]
    return TopologyRoom(nodes, {"f": Flavor("f", topology="dc", levels=LEVELS)}).obstacle("f", merged(found))


def both(toy: Any) -> tuple[str, int]:
    """What the gate says of the gang, and how many of its pods the scheduler then binds."""
    told = estimate(list(toy.store.objects.values()))
    toy.checks = False
    toy.settle()
    return told, len(toy.bound("w"))


QUIET = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@QUIET
@given(NODES, SETS)
def test_the_gate_lets_in_exactly_who_will_be_placed(
    new_toy: Any, nodes: list[tuple[str, str, int]], sets: list[Wanted]
) -> None:
    toy = new_toy()
    build(toy, nodes, sets)
    told, placed = both(toy)
    assert placed == (0 if told else sum(item.pods for item in sets)), told


@QUIET
@given(NODES, SETS.filter(lambda sets: len(sets) == 1))
def test_who_is_placed_though_the_scheduler_knows_more_was_let_in(
    new_toy: Any, nodes: list[tuple[str, str, int]], sets: list[Wanted]
) -> None:
    toy = new_toy()
    build(toy, nodes, sets, ports=[{"containerPort": 80, "hostPort": 80}])
    told, placed = both(toy)
    assert not (told and placed), told
