"""Who may be evicted at all, and in which parts: single members that a gang can spare, or a gang as a whole."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from gang_scheduler.domain.cluster import Cluster
from gang_scheduler.domain.line.waiting_line import Unit
from gang_scheduler.domain.pods.groups import Group
from gang_scheduler.domain.pods.pod_record import LIVE, PodRecord, Standing
from gang_scheduler.domain.queues.queue_ledger import total_of
from gang_scheduler.domain.terms.gang_terms import FIXED
from kube import Object
from resources import Amounts

PREEMPTABLE = "volcano.sh/preemptable"
SYSTEM_NAMESPACE = "kube-system"
SYSTEM_CLASS = "system-"
SYSTEM_PRIORITY = 2_000_000_000
_PLACED = (Standing.BOUND, Standing.RUNNING)


class GangEviction(StrEnum):
    """Whether a gang may be evicted whole, or only loses what it has above its minimum."""

    WHOLE = "whole"
    SURPLUS = "surplus"


@dataclass(slots=True, eq=False)
class Lot:
    """Pods that go together or stay together: one member that its gang can spare, or all of a gang (``minimum``).

    Never changed after it was made, and not frozen because many are made.
    """

    records: tuple[PodRecord, ...]
    holding: "Holding"
    minimum: bool
    priority: int
    created: str

    @property
    def queue(self) -> str:
        return self.records[0].group.queue

    def freed(self) -> Amounts:
        """What all its pods ask for."""
        if len(self.records) == 1:
            return self.records[0].shape.requests
        return total_of((record.shape.requests, 1) for record in self.records)


@dataclass(slots=True, eq=False)
class Holding:
    """What a gang, or a bundle of gangs, has on nodes. ``spare`` and ``spare_of_role`` say how many may go one by one."""

    groups: list[Group]
    movable: list[PodRecord] = field(default_factory=list)
    whole: bool = True
    spare: int = 0
    spare_of_role: dict[str, int] = field(default_factory=dict)

    def spares(self, gone: int, role: str, of_role: int) -> bool:
        """Whether the gang keeps its minimum when ``gone`` members leave, ``of_role`` of them with one role."""
        return gone <= self.spare and of_role <= self.spare_of_role.get(role, of_role)


def holdings(cluster: Cluster) -> dict[str, list[Holding]]:
    """By queue what is held there and may be evicted in some way."""
    found: dict[str, list[Holding]] = {}
    done: set[Unit] = set()
    for group in cluster.groups.values():
        counts = group.counts
        if not counts[Standing.BOUND] and not counts[Standing.RUNNING]:
            continue
        unit = group.bundle()
        if unit in done:
            continue
        done.add(unit)
        parts = [group] if len(unit) == 1 else [cluster.groups[gang] for gang in unit if gang in cluster.groups]
        holding = holding_of(parts, cluster)
        if holding.movable and (holding.whole or holding.spare):
            found.setdefault(group.queue, []).append(holding)
    return found


def holding_of(groups: list[Group], cluster: Cluster) -> Holding:
    """What the ``groups`` have, all of which started together."""
    holding, cooldowns, now = Holding(groups), cluster.cooldowns, cluster.room.ledger.now
    for group in groups:
        staying = [r for r in group.members.values() if r.standing in _PLACED and not r.evicting]
        movable = [r for r in _evictable(group, staying) if r.slot >= 0 and not cooldowns.spares(r, now)]
        holding.movable += movable
        holding.whole = holding.whole and len(movable) == len(staying)
    if len(groups) == 1 and groups[0].terms is not None and not groups[0].terms.sub_groups:
        _count_spare(holding, groups[0])
    return holding


def _count_spare(holding: Holding, group: Group) -> None:
    terms = group.terms
    assert terms is not None
    live = (
        [r for r in group.members.values() if r.standing in LIVE and not r.evicting] if len(group.members) > 1 else []
    )
    holding.spare = max(0, len(live) - terms.min_member)
    if holding.spare and terms.roles:
        for role, least in terms.roles:
            holding.spare_of_role[role] = max(0, sum(r.role == role for r in live) - least)


def _evictable(group: Group, records: Sequence[PodRecord]) -> list[PodRecord]:
    """Those of a gang that are not spared whoever asks."""
    # What is charged to the part of an elastic quota that is not taken back says so itself.
    if group.queue.endswith(FIXED):
        return []
    of_gang = _stated(group.pod_group) if group.pod_group is not None else None
    return [record for record in records if not _is_spared(record, of_gang)]


def _is_spared(record: PodRecord, of_gang: str | None) -> bool:
    """Whether a pod is never evicted; ``of_gang`` is what its gang says about that, where it says nothing itself."""
    if not record.ours or record.assumed or record.evicting:
        return True
    if record.key.namespace == SYSTEM_NAMESPACE or record.form.priority >= SYSTEM_PRIORITY:
        return True
    named = record.pod.spec.get("priorityClassName")
    if named and str(named).startswith(SYSTEM_CLASS):
        return True
    stated = _stated(record.pod)
    if stated is None:
        stated = of_gang
    return stated is not None and stated.lower() == "false"


def _stated(item: Object) -> str | None:
    """What an object says about whether it may be evicted; its annotation wins over its label."""
    marks = item.metadata.get("annotations")
    if not marks or PREEMPTABLE not in marks:
        marks = item.metadata.get("labels")
    return str(marks[PREEMPTABLE]) if marks and PREEMPTABLE in marks else None


def victim_priority(record: PodRecord, classes: Mapping[str, int]) -> int:
    """The priority class of its gang decides, else the pod's own priority."""
    of_class = record.group.class_priority(classes)
    return record.form.priority if of_class is None else of_class


def lots_of(holding: Holding, classes: Mapping[str, int], mode: GangEviction) -> Iterator[Lot]:
    """The parts in which a holding may be evicted."""
    if holding.spare:
        of_class = holding.groups[0].class_priority(classes)
        for record in holding.movable:
            if not holding.spare_of_role or holding.spare_of_role.get(record.role, 1) > 0:
                priority = record.form.priority if of_class is None else of_class
                yield Lot((record,), holding, False, priority, record.order[1])
    if holding.whole and mode is GangEviction.WHOLE:
        records = tuple(holding.movable)
        of_classes = {id(group): group.class_priority(classes) for group in holding.groups}
        priority = max(
            record.form.priority if (of_class := of_classes[id(record.group)]) is None else of_class
            for record in records
        )
        yield Lot(records, holding, True, priority, holding.groups[0].created)
