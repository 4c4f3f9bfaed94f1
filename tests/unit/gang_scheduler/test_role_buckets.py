"""The buckets of a gang's roles against the plain rule, which looks at every bucket for every member."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gang_scheduler.domain.gangs.role_buckets import buckets_of, in_order, weight_of
from gang_scheduler.domain.terms.task_topology import TaskTopology, task_topology_of

ROLES = ("ps", "worker", "chief")
PREFIX = "volcano.sh/task-topology-"


def member(role: str, number: int, cpu: int) -> Any:
    shape = SimpleNamespace(requests={"cpu": 1000 * cpu, "memory": cpu << 30})
    return SimpleNamespace(role=role, order=(0, "", "", f"{role}-{number:03}"), shape=shape, name=f"{role}-{number}")


@dataclass
class Plain:
    members: list[Any] = field(default_factory=list)


def plainly(topology: TaskTopology, records: list[Any]) -> list[list[str]]:
    """Each member joins the bucket with most that it wants to be with, of such the lightest, of such the oldest."""
    buckets: list[Plain] = []
    for record in in_order(topology, records):
        best: tuple[int, int, int] | None = None
        for number, bucket in enumerate(buckets):
            roles = [other.role for other in bucket.members]
            pull = sum((record.role, role) in topology.near for role in roles)
            pull -= sum((record.role, role) in topology.apart for role in roles)
            rank = (-pull, sum(map(weight_of, bucket.members)), number)
            if pull >= 0 and (best is None or rank < best):
                best = rank
        if best is None:
            buckets.append(Plain([record]))
        else:
            buckets[best[2]].members.append(record)
    found = sorted(
        enumerate(buckets), key=lambda item: (-len(item[1].members), -sum(map(weight_of, item[1].members)), item[0])
    )
    return [[record.name for record in bucket.members] for _, bucket in found]


TEXTS = st.lists(st.lists(st.sampled_from(ROLES), min_size=1, max_size=3).map(",".join), max_size=3).map(";".join)


@settings(max_examples=300, deadline=None)
@given(TEXTS, TEXTS, st.lists(st.sampled_from(ROLES)).map(",".join), st.data())
def test_the_buckets_are_those_of_the_plain_rule_in_whatever_order_members_come(
    near: str, apart: str, order: str, data: Any
) -> None:
    topology = task_topology_of(
        {PREFIX + "affinity": near, PREFIX + "anti-affinity": apart, PREFIX + "task-order": order}
    )
    if topology is None:
        return
    cpus = {role: data.draw(st.integers(1, 3)) for role in ROLES}
    counts = {role: data.draw(st.integers(0, 5)) for role in ROLES}
    records = [member(role, number, cpus[role]) for role in ROLES for number in range(counts[role])]
    expected = plainly(topology, records)
    shuffled = data.draw(st.permutations(records))
    found = [[record.name for record in bucket.records] for bucket in buckets_of(topology, shuffled)]
    assert found == expected
    assert sorted(name for bucket in found for name in bucket) == sorted(record.name for record in records)
