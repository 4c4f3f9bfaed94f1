"""The gangs that pods are in, and the queues that gangs are in."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from gang_scheduler.domain.books.pod_places import PodPlaces
from gang_scheduler.domain.pods.groups import Group
from gang_scheduler.domain.pods.pod_record import PodRecord, standing_of
from gang_scheduler.domain.queues.quota_admission import Grant, grant_of
from gang_scheduler.domain.terms.gang_terms import ADMISSION, GroupId, group_of, queue_of, quota_of
from kube import Object
from kube.elastic_quotas import NamespaceQuotas


@dataclass(slots=True)
class PodGangs(PodPlaces):
    """``touched`` are the gangs that changed in any way since it was cleared; True says that they should be tried again."""

    groups: dict[GroupId, Group] = field(init=False, default_factory=dict)
    touched: dict[GroupId, bool] = field(init=False, default_factory=dict)
    namespace_annotations: dict[str, dict[str, str]] = field(init=False, default_factory=dict)
    quotas: NamespaceQuotas = field(init=False, default_factory=NamespaceQuotas)
    """The elastic quotas that pods of a namespace are in which name no queue."""

    def touch(self, gang: GroupId, again: bool) -> None:
        """A gang changed; ``again``: in a way that may let it be placed, or that takes the reason from its waiting."""
        self.touched[gang] = again or self.touched.get(gang, False)

    def join(self, records: Sequence[PodRecord], gang: GroupId) -> None:
        """Pods that are alike are members of ``gang`` from now on."""
        group = self.groups.get(gang)
        if group is None:
            group = self.groups[gang] = Group(gang)
        for record in records:
            record.group = group
        group.put(records, standing_of(records[0]))
        if group.terms is None or group.pod_group is None or not group.terms.queue or quota_of(records[0].pod.labels):
            self.assign_queue(group)
        self.touch(gang, again=True)

    def part(self, record: PodRecord) -> None:
        group = record.group
        group.drop(record)
        self.touch(group.id, again=True)
        self.forget_if_empty(group)

    def forget_if_empty(self, group: Group) -> None:
        if not group.members and group.pod_group is None:
            self.groups.pop(group.id, None)

    def assign_queue(self, group: Group) -> None:
        """The queue that a gang belongs to; what its members use moves with it.

        Elastic quotas are named by pods: one that they name wins over the Volcano queue of their PodGroup.
        """
        first = group.members[min(group.members)].pod if group.members else None
        if group.pod_group is not None and group.terms is not None and group.terms.queue:
            queue = group.terms.queue
            if first is not None and "/" not in queue:
                queue = quota_of(first.labels) or queue
        elif first is not None:
            queue = self.queue_by_itself(first)
        else:
            return
        if queue == group.queue:
            return
        known = bool(group.queue)
        group.queue = queue
        for record in list(group.members.values()):
            if record.charged is not None:
                self.lift(record)
                self.count(record)
        if known:
            self.queue_changed(group)

    def queue_of_pod(self, pod: Object) -> str:
        """The queue of the gang that a pod is or will be in."""
        group = self.groups.get(group_of(pod))
        return (group.queue if group else "") or self.queue_by_itself(pod)

    def grant_of_pod(self, pod: Object) -> Grant | None:
        """What a pod or its group was granted."""
        group = self.groups.get(group_of(pod))
        whole = (
            group.pod_group.annotations.get(ADMISSION) if group is not None and group.pod_group is not None else None
        )
        return grant_of(text) if (text := pod.annotations.get(ADMISSION) or whole) else None

    def queue_by_itself(self, pod: Object) -> str:
        """The queue of a pod whose PodGroup names none."""
        space = pod.namespace
        return queue_of(pod, self.namespace_annotations.get(space, {}), self.quotas.queues.get(space, ""))

    def queue_changed(self, group: Group) -> None:
        """The members of a group are in another queue than before."""
