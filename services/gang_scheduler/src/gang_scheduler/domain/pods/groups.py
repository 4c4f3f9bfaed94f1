"""Gangs as they are now: their PodGroup, their members and how many of them stand where."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gang_scheduler.domain.pods.pod_record import PodRecord, Standing, in_order
from gang_scheduler.domain.terms.gang_terms import (
    ADMISSION,
    ALONE,
    LOCAL_QUEUE,
    REVOKED,
    VOLCANO_GROUP,
    GangTerms,
    GroupId,
    MatchPolicy,
    terms_of_group,
    terms_of_pod,
)
from gang_scheduler.domain.terms.revocable_pods import is_last, put_last
from kube import Key, Object

_STANDINGS = len(Standing)
SATISFIED = ("Running", "Unknown", "Completed")
"""The phases of a PodGroup whose gang has started at some time."""


@dataclass(slots=True, eq=False)
class Group:
    """A gang, or a pod without one. ``terms`` is None while a gang is named by pods but described nowhere."""

    id: GroupId
    pod_group: Object | None = None
    members: dict[Key, PodRecord] = field(default_factory=dict)
    pending: dict[Key, PodRecord] = field(default_factory=dict)
    counts: list[int] = field(default_factory=lambda: [0] * _STANDINGS)
    terms: GangTerms | None = None
    queue: str = ""
    _priority: int | None = None
    _created: str | None = None

    @property
    def key(self) -> Key:
        """The object that decisions about the group name: its PodGroup, else its first member."""
        if self.pod_group is not None:
            return self.pod_group.key
        return min(self.members) if self.members else Key("Pod", self.id.namespace, self.id.name)

    @property
    def uid(self) -> str:
        """The uid of ``key``."""
        if self.pod_group is not None:
            return self.pod_group.uid
        return self.members[min(self.members)].pod.uid if self.members else ""

    @property
    def name(self) -> str:
        """What people call it."""
        return self.id.title

    @property
    def started(self) -> bool:
        """Whether a member is bound, running or has succeeded."""
        counts = self.counts
        return bool(counts[Standing.BOUND] or counts[Standing.RUNNING] or counts[Standing.SUCCEEDED])

    @property
    def open(self) -> bool:
        """Whether members may start that are not its whole minimum: because it has started, as far as its match policy goes."""
        match = self.terms.match if self.terms is not None else MatchPolicy.NONE
        if match is MatchPolicy.ONLY_WAITING:
            return False
        if match is MatchPolicy.ONCE_SATISFIED and not self.started:
            # Who had a node got it with the minimum.
            return self.phase in SATISFIED or any(record.node for record in self.members.values())
        return self.started

    @property
    def on_nodes(self) -> int:
        """How many members are bound or run."""
        return self.counts[Standing.BOUND] + self.counts[Standing.RUNNING]

    @property
    def fenced(self) -> bool:
        """Whether its members have to be near each other in the network, or by the topology of their flavor."""
        if self.terms is not None and self.terms.fenced:
            return True
        return any(record.podset is not None for record in self.pending.values())

    @property
    def live(self) -> int:
        """How many members count towards the minimum."""
        counts = self.counts
        return counts[Standing.BOUND] + counts[Standing.RUNNING] + counts[Standing.SUCCEEDED]

    @property
    def phase(self) -> str:
        """The phase of its PodGroup."""
        return str(self.pod_group.status.get("phase") or "") if self.pod_group else ""

    @property
    def let_in(self) -> bool:
        """Whether its queue has let it in and not taken that back.

        Without a Volcano PodGroup only those in a LocalQueue need leave, each of them.
        """
        if self.pod_group is None or self.pod_group.kind != VOLCANO_GROUP:
            for record in self.pending.values():
                metadata = record.pod.metadata
                if LOCAL_QUEUE in (metadata.get("labels") or ()) and ADMISSION not in record.pod.annotations:
                    return False
            return True
        return self.phase not in ("", "Pending") and REVOKED not in self.pod_group.annotations

    @property
    def created(self) -> str:
        """When its PodGroup was created, else its first member."""
        if self.pod_group is not None:
            return self.pod_group.created
        if self._created is None:
            self._created = min((record.pod.created for record in self.members.values()), default="")
        return self._created

    def priority(self, classes: Mapping[str, int]) -> int:
        """The value of its priority class, else the highest priority of its members."""
        if self._priority is None:
            by_class = self.class_priority(classes)
            members = (record.form.priority for record in self.members.values())
            self._priority = max(members, default=0) if by_class is None else by_class
        return self._priority

    def class_priority(self, classes: Mapping[str, int]) -> int | None:
        """The value of its priority class, None where it names none that there is."""
        value = classes.get(self.terms.priority_class) if self.terms else None
        if value is None or not self.members:
            return value
        # Whoever can be sent away with a revocable zone comes last, whatever its class.
        return put_last(value) if all(is_last(record.form.priority) for record in self.members.values()) else value

    def bundle(self) -> tuple[GroupId, ...]:
        """The gangs that start together with it, itself included."""
        return (self.terms.bundle if self.terms else ()) or (self.id,)

    def put(self, records: Sequence[PodRecord], standing: Standing) -> None:
        """Members join, or their standing changes."""
        before = len(self.members)
        for record in records:
            if record.key in self.members:
                self._uncount(record)
            else:
                self.members[record.key] = record
            record.standing = standing
            if standing is Standing.PENDING:
                self.pending[record.key] = record
        self.counts[standing] += len(records)
        if len(self.members) != before:
            self._priority = self._created = None
            if self.pod_group is None:
                self.renew()

    def drop(self, record: PodRecord) -> None:
        """A member leaves."""
        del self.members[record.key]
        self._uncount(record)
        self._priority = self._created = None
        if self.pod_group is None:
            self.renew()

    def describe(self, pod_group: Object | None) -> bool:
        """Its PodGroup came, changed or went; returns whether more than its status did."""
        unchanged = (
            pod_group is not None
            and self.pod_group is not None
            and pod_group.body == self.pod_group.body
            and pod_group.metadata == self.pod_group.metadata
        )
        self.pod_group = pod_group
        if not unchanged:
            self.renew()
        return not unchanged

    def renew(self) -> None:
        """Read the terms again."""
        self._priority = self._created = None
        if self.id.kind == "pod":
            self.terms = ALONE
        elif self.pod_group is not None:
            self.terms = terms_of_group(self.pod_group)
        else:
            stated = [terms_of_pod(self.members[key].pod) for key in sorted(self.members)]
            known = [terms for terms in stated if terms is not None]
            self.terms = known[0] if known else None

    def priority_changed(self) -> None:
        """The priority of a member, or of a class, may be another one."""
        self._priority = None

    def waiting(self) -> list[PodRecord]:
        """The pending members in their order."""
        return in_order(self.pending.values())

    def _uncount(self, record: PodRecord) -> None:
        self.counts[record.standing] -= 1
        if record.standing is Standing.PENDING:
            del self.pending[record.key]


def is_lone_pod(groups: Sequence[Group]) -> bool:
    """Whether it is a pod that is a gang by itself: of most clusters most units are."""
    return len(groups) == 1 and groups[0].id.kind == "pod"
