"""Gangs tied to a domain come, lose members, get replacements and grow: none is ever in two domains."""

import json
from typing import Any, NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

RACK, HOST = "example.com/rack", "kubernetes.io/hostname"
LABEL, ADMISSION = "kueue.x-k8s.io/queue-name", "tidegate.dev/admission"
GRANT = json.dumps({"clusterQueue": "cq", "flavors": {"cpu": "f"}, "usage": {"cpu": 10**9}, "topology": [RACK, HOST]})
GANGS = ("g0", "g1", "g2")


class Step(NamedTuple):
    """What happens to a gang or to a node."""

    kind: str
    gang: int
    number: int


STEPS = st.lists(
    st.builds(
        Step, st.sampled_from(("grow", "lose", "lose all", "close", "open")), st.integers(0, 2), st.integers(0, 5)
    ),
    max_size=12,
)


def cluster(toy: Any, racks: list[int]) -> list[str]:
    """Racks of so many nodes of two cpus; returns the names of all nodes."""
    toy.queues = {"default": {}, "cohort/cq": {}}
    names = [f"r{rack}-{index}" for rack, count in enumerate(racks) for index in range(count)]
    for name in names:
        toy.node(name, cpu=2, labels={RACK: name.partition("-")[0]})
    return names


def group(toy: Any, name: str, least: int, *, by_pods: bool) -> None:
    """A gang tied to a rack, by its PodGroup or by the annotations of its pods."""
    topology = {} if by_pods else {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    metadata = {"name": name, **({"labels": {LABEL: "lq"}, "annotations": {ADMISSION: GRANT}} if by_pods else {})}
    toy.put(
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": metadata,
            "spec": {"minMember": least, **topology},
            "status": {"phase": "Inqueue"},
        }
    )


def member(toy: Any, name: str, number: int, *, by_pods: bool) -> None:
    annotations = {"scheduling.k8s.io/group-name": name}
    if by_pods:
        annotations["kueue.x-k8s.io/podset-required-topology"] = RACK
    toy.pods(f"{name}-{number:02}", group=name, cpu=1, annotations=annotations, labels={LABEL: "lq"} if by_pods else {})


def happen(toy: Any, step: Step, names: list[str], made: list[int], *, by_pods: bool) -> None:
    name = GANGS[step.gang]
    if step.kind == "grow":
        member(toy, name, made[step.gang], by_pods=by_pods)
        made[step.gang] += 1
    elif step.kind in ("close", "open"):
        node = names[step.number % len(names)]
        spec = {"unschedulable": True} if step.kind == "close" else {}
        toy.node(node, cpu=2, labels={RACK: node.partition("-")[0]}, spec=spec)
    else:
        bound = toy.bound(f"{name}-")
        lost = bound if step.kind == "lose all" else bound[:1]
        toy.delete(*(toy.pod(pod).key for pod in lost))
        for _ in lost:
            member(toy, name, made[step.gang], by_pods=by_pods)
            made[step.gang] += 1


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.integers(1, 3), min_size=1, max_size=3),
    st.lists(st.integers(1, 4), min_size=3, max_size=3),
    STEPS,
    st.booleans(),
)
def test_no_gang_is_ever_in_two_domains_and_none_starts_below_its_minimum(
    new_toy: Any, racks: list[int], minima: list[int], steps: list[Step], by_pods: bool
) -> None:
    toy = new_toy()
    names = cluster(toy, racks)
    made = list(minima)
    for name, least in zip(GANGS, minima, strict=True):
        group(toy, name, least, by_pods=by_pods)
        for number in range(least):
            member(toy, name, number, by_pods=by_pods)
    toy.settle()
    started = {name: bool(toy.bound(f"{name}-")) for name in GANGS}
    for step in [*steps, Step("open", 0, 0)]:
        happen(toy, step, names, made, by_pods=by_pods)
        toy.settle()
        for name, least in zip(GANGS, minima, strict=True):
            bound = toy.bound(f"{name}-")
            assert len({toy.where(pod).partition("-")[0] for pod in bound}) <= 1
            if not bound:
                started[name] = False
            elif not started[name]:
                assert len(bound) >= least
                started[name] = True
