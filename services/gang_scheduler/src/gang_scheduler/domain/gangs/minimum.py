"""The minimum of a gang: which members it lacks, and which of those that wait make it up."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from gang_scheduler.domain.pods.groups import Group
from gang_scheduler.domain.pods.pod_record import PodRecord, Standing
from gang_scheduler.domain.terms.gang_terms import GangTerms, MatchPolicy, SubGroupPolicy
from gang_scheduler.domain.terms.selectors import matches_all
from kube.words import counted, verb


class SubGroup(NamedTuple):
    """One sub-group: the values of its policy's keys, and its waiting members in their order."""

    policy: SubGroupPolicy
    values: tuple[str, ...]
    waiting: tuple[PodRecord, ...]

    @property
    def whole(self) -> tuple[PodRecord, ...]:
        """The members that start together; empty when there are not enough."""
        return self.waiting[: self.policy.size] if len(self.waiting) >= self.policy.size else ()


@dataclass(frozen=True, slots=True)
class Candidates:
    """The waiting members of a gang, sorted by how they may start."""

    terms: GangTerms
    free: list[PodRecord]
    """Those in no sub-group: each may start by itself."""

    sub_groups: list[SubGroup]

    @property
    def count(self) -> int:
        """How many could start."""
        return len(self.free) + sum(len(item.whole) for item in self.sub_groups)

    def of_role(self, role: str) -> list[PodRecord]:
        """The free ones of a role."""
        return [record for record in self.free if record.role == role]


def candidates(group: Group) -> Candidates:
    """The waiting members of ``group``."""
    assert group.terms is not None, "a gang without terms waits"
    waiting = group.waiting()
    if not group.terms.sub_groups:
        return Candidates(group.terms, waiting, [])
    free: list[PodRecord] = []
    divided: dict[tuple[int, tuple[str, ...]], list[PodRecord]] = {}
    for record in waiting:
        place = sub_group_of(record, group.terms)
        if place is None:
            free.append(record)
        else:
            divided.setdefault(place, []).append(record)
    policies = group.terms.sub_groups
    parts = [SubGroup(policies[number], values, tuple(divided[number, values])) for number, values in sorted(divided)]
    return Candidates(group.terms, free, parts)


def sub_group_of(record: PodRecord, terms: GangTerms) -> tuple[int, tuple[str, ...]] | None:
    """The number of the policy and the values of its keys that put a pod into a sub-group."""
    labels = record.pod.labels
    for number, policy in enumerate(terms.sub_groups):
        if policy.selector is not None and not matches_all(policy.selector, labels):
            continue
        if all(key in labels for key in policy.keys):
            return number, tuple(labels[key] for key in policy.keys)
    return None


def shortage(group: Group, found: Candidates) -> str:
    """Which members the gang lacks for its minimum, in words; "" when there are enough."""
    terms = found.terms
    for policy in terms.sub_groups:
        whole = sum(1 for item in found.sub_groups if item.policy is policy and item.whole)
        if whole < policy.minimum:
            return (
                f"{whole} of the {policy.minimum} sub-groups {policy.name} that {group.name} needs are complete "
                f"({counted(policy.size, 'pod')} each)"
            )
    if found.count < terms.min_member:
        held = group.counts[Standing.HELD]
        gated = f", {held} more are held back by scheduling gates" if held else ""
        return f"{found.count} of the {counted(terms.min_member, 'pod')} that {group.name} needs at once {verb(found.count)} there{gated}"
    return ""


def shortage_of_role(group: Group, found: Candidates) -> str:
    """Which role the gang lacks members of, in words; "" where every role has its minimum."""
    for role, least in found.terms.roles:
        present = sum(1 for record in group.pending.values() if record.role == role)
        if present < least:
            return (
                f"{present} of the {counted(least, 'pod')} of role {role} that {group.name} needs {verb(present)} there"
            )
    return ""


def lack_beside_running(group: Group) -> str:
    """The same for a gang that runs, where its match policy wants its minimum complete; "" where nothing is missing."""
    terms = group.terms
    if terms is None or terms.match is not MatchPolicy.WAITING_AND_RUNNING:
        return ""
    present = group.on_nodes + len(group.pending)
    if present >= terms.min_member:
        return ""
    return (
        f"{present} of the {counted(terms.min_member, 'pod')} that {group.name} needs {verb(present)} there, "
        f"{group.on_nodes} of them on nodes; its match policy is {terms.match}"
    )


def first_choice(found: Candidates) -> list[PodRecord]:
    """The members that make up the minimum if there is room for any: the first in order that satisfy every part of it."""
    terms = found.terms
    if not terms.sub_groups and not terms.roles:
        return found.free[: terms.min_member]
    chosen: dict[int, PodRecord] = {}
    rest: list[SubGroup] = []
    needed = {id(policy): policy.minimum for policy in terms.sub_groups}
    for item in found.sub_groups:
        if item.whole and needed[id(item.policy)] > 0:
            needed[id(item.policy)] -= 1
            _choose(chosen, item.whole)
        elif item.whole:
            rest.append(item)
    for role, least in terms.roles:
        missing = least - sum(1 for record in chosen.values() if record.role == role)
        _choose(chosen, found.of_role(role)[: max(0, missing)])
        _add_sub_groups(chosen, rest, lambda r=role, n=least: sum(x.role == r for x in chosen.values()) >= n)  # type: ignore[misc]
    for record in found.free:
        if len(chosen) >= terms.min_member:
            break
        chosen.setdefault(id(record), record)
    _add_sub_groups(chosen, rest, lambda: len(chosen) >= terms.min_member)
    return list(chosen.values())


def _choose(chosen: dict[int, PodRecord], records: Iterable[PodRecord]) -> None:
    for record in records:
        chosen[id(record)] = record


def _add_sub_groups(chosen: dict[int, PodRecord], rest: list[SubGroup], enough: Callable[[], bool]) -> None:
    while rest and not enough():
        _choose(chosen, rest.pop(0).whole)
