"""The pods of a cluster: each in its gang, and in the books of what is taken."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from gang_scheduler.domain.books.pod_forms import PodForms, go_on_alike, traits_of_pod
from gang_scheduler.domain.books.pod_gangs import PodGangs
from gang_scheduler.domain.devices.allotments import allotment_of
from gang_scheduler.domain.nodes.node_load import NodeLoad
from gang_scheduler.domain.nodes.node_table import NodeTable
from gang_scheduler.domain.nodes.revocable_zones import RevocableZones
from gang_scheduler.domain.pods.cooldowns import Cooldowns, has_cooldown
from gang_scheduler.domain.pods.groups import Group, is_lone_pod
from gang_scheduler.domain.pods.pod_record import FINISHED, PodRecord, Standing, standing_of
from gang_scheduler.domain.pods.pod_shape import ResourceRows, ShapeCatalog
from gang_scheduler.domain.pods.podset import podset_of
from gang_scheduler.domain.pods.run_time import RunTimes
from gang_scheduler.domain.queues.queue_ledger import QueueLedger
from gang_scheduler.domain.queues.queue_nodes import QueueNodes
from gang_scheduler.domain.reservations.reservation_terms import ALLOCATED, reservation_of
from gang_scheduler.domain.room.room import Room
from gang_scheduler.domain.score.scoring import Placement
from gang_scheduler.domain.storage.claimants import Claimants
from gang_scheduler.domain.terms.gang_terms import ADMISSION, GroupId, group_of
from gang_scheduler.domain.terms.load_policy import LoadPolicy
from kube import Event, Key, Object
from kube.devices import devices_of
from kube.pods import same_but_for_node
from kube.runtime_classes import class_name


@dataclass(slots=True)
class PodBooks(PodGangs):
    """The pods by key, as the facts and the decisions on their way make them."""

    schedulers: frozenset[str]
    placement: Placement
    load: LoadPolicy = field(default_factory=LoadPolicy)
    zones: RevocableZones = field(default_factory=lambda: RevocableZones({}))
    forms: PodForms = field(init=False)
    run_times: RunTimes = field(default_factory=RunTimes)
    """How long pods are expected to run."""

    pods: dict[Key, PodRecord] = field(default_factory=dict)
    departing: bool = False
    """Whether pods with a node began to leave since this was cleared: their room counts for whoever takes the rest from others."""

    claimants: Claimants = field(default_factory=Claimants)
    cooldowns: Cooldowns = field(default_factory=Cooldowns)

    def __post_init__(self) -> None:
        resources = ResourceRows()
        self.room = Room(NodeTable(resources, load=NodeLoad(self.load)), QueueLedger(), self.placement)
        catalog = ShapeCatalog(resources, self.load.factors)
        self.forms = PodForms(catalog, self.room.claim_book, QueueNodes(self.room.ledger), self.zones)

    def fold_claim(self, event: Event) -> None:
        """A resource claim changed: what the pods that name it need may be something else now."""
        self.room.claim_book.fold_claim(event)
        self.claimants.unreleased[event.key] = None
        for record in self.claimants.of_device(event.key):
            self._renew_claims(record)
            self.touch(record.group.id, again=True)

    def _renew_claims(self, record: PodRecord) -> None:
        """Note which claims a pod has by now; a waiting one is another shape then."""
        self.claimants.rename(record, self.room.claim_book.keys_of(record.pod))
        if not record.node and record.shape.resource_claims != self.room.claim_book.text_of(record.pod):
            self._reform(record)

    def fold_pods(self, run: Sequence[Event]) -> None:
        """Pods that are alike came, changed or went."""
        coming: list[Object] = []
        changing: list[tuple[PodRecord, Object]] = []
        for event in run:
            new, record = event.new, self.pods.get(event.key)
            if record is not None and (new is None or new.uid != record.pod.uid):
                self._remove(record)
                record = None
            if new is not None and record is None:
                coming.append(new)
            elif new is not None and record is not None:
                changing.append((record, new))
        if coming:
            self._add(coming)
        if changing and self._goes_on(changing):
            for members in [[one] for one in changing] if is_lone_pod([changing[0][0].group]) else [changing]:
                self._go_on(members)
        else:
            for record, new in changing:
                self._update(record, new)

    def assume(self, records: list[PodRecord], node: str) -> None:
        """Pods of one shape and one gang count as bound to ``node`` until the fact says so, or ``unassume`` does."""
        for record in records:
            record.assumed = True
            self.bind(record, node)
        for standing, members in groupby(records, standing_of):
            records[0].group.put(list(members), standing)
        slot = self.room.table.slots.get(node, -1)
        if slot >= 0:
            self.room.occupy(records, slot, records[0].group.queue)
        self.touch(records[0].group.id, again=True)

    def unassume(self, record: PodRecord) -> None:
        """The pod was not bound after all."""
        record.assumed = False
        record.given = allotment_of(devices_of(record.pod.annotations))
        self.lift(record)
        node = str(record.pod.spec.get("nodeName") or "")
        record.reservation = reservation_of(record.pod.annotations) if node else ""
        self.bind(record, node)
        self._stand(record, again=True)

    def _add(self, pods: Sequence[Object]) -> None:
        """Pods that are alike are there."""
        first = pods[0]
        gang, own_claims = group_of(first), "resourceClaims" in first.spec
        if len(pods) > 1 and own_claims:
            for pod in pods:
                self._add([pod])
            return
        grant = self.grant_of_pod(first)
        form = self.forms.of(first, self.queue_of_pod(first), grant)
        ours, given = form.scheduler in self.schedulers, allotment_of(devices_of(first.annotations))
        bound = bool(first.spec.get("nodeName"))
        reservation = reservation_of(first.annotations) if bound else ""
        records = [PodRecord(pod.key, pod, form, ours, given=given, reservation=reservation) for pod in pods]
        for record in records:
            record.podset = podset_of(record, grant.levels) if grant is not None else None
            record.rank()
            if not form.shape.terms.empty:
                self.room.neighbours.watch(form.shape.terms, self.placed)
            if form.shape.claims:
                self.claimants.come(record)
            if bound:
                self.bind(record, str(record.pod.spec["nodeName"]))
        self.pods.update((record.key, record) for record in records)
        if gang.kind == "pod":
            for record in records:
                self.join([record], GroupId("pod", record.key.namespace, record.key.name))
        else:
            self.join(records, gang)
        if own_claims:
            self._renew_claims(records[0])
        if has_cooldown(first):
            self.cooldowns.come(records)
        for record in records if bound else ():
            self.count(record)

    def _remove(self, record: PodRecord) -> None:
        del self.pods[record.key]
        self.claimants.go(record)
        self.cooldowns.go(record)
        self.bind(record, "")
        self.count(record)
        self.part(record)
        if not record.shape.terms.empty:
            self.room.neighbours.leave(record.shape.terms)

    def _update(self, record: PodRecord, new: Object) -> None:
        old, record.pod = record.pod, new
        again = False
        if new.metadata is not old.metadata and new.metadata != old.metadata:
            again = True
            self._renew_metadata(record, old)
        old_spec, spec = old.spec, new.spec
        if spec is not old_spec and not same_but_for_node(old_spec, spec):
            again = True
            self._reform(record)
        node = str(spec.get("nodeName") or "")
        if node or not record.assumed:
            if record.assumed and record.reservation:
                self.room.reserved.note(record.reservation)
            record.assumed = False
            self.bind(record, node)
        if spec.get("resourceClaims") and record.pod.status is not old.status:
            shape = record.shape
            self._renew_claims(record)
            again = again or record.shape is not shape
        self._stand(record, again=again)

    def _goes_on(self, changing: Sequence[tuple[PodRecord, Object]]) -> bool:
        """Whether only statuses of pods with nodes changed, of pods of one gang or of such that are each by itself."""
        group = changing[0][0].group
        return go_on_alike(changing) and (is_lone_pod([group]) or all(other.group is group for other, _ in changing))

    def _go_on(self, changing: Sequence[tuple[PodRecord, Object]]) -> None:
        """What ``_update`` comes to for such pods of one gang."""
        for record, new in changing:
            if record.assumed and record.reservation:
                self.room.reserved.note(record.reservation)
            record.pod, record.assumed = new, False
            self.bind(record, new.spec["nodeName"])
        first = changing[0][0]
        standing = standing_of(first)
        moved = [record for record, _ in changing if record.standing is not standing]
        first.group.put(moved, standing)
        for record in moved if standing in FINISHED else ():
            self.claimants.end(record)
        for record, _ in changing:
            self.count(record)
        self.touch(first.group.id, bool(moved))

    def _stand(self, record: PodRecord, *, again: bool = False) -> None:
        standing = standing_of(record)
        if standing is not record.standing:
            record.group.put([record], standing)
            again = True
            if standing in FINISHED:
                self.claimants.end(record)
            self.departing = self.departing or (standing is Standing.LEAVING and record.slot >= 0)
        self.count(record)
        self.touch(record.group.id, again)

    def _renew_metadata(self, record: PodRecord, old: Object) -> None:
        """Labels, annotations or the deletion of a pod changed; its gang may be another one now."""
        record.rank()
        if record.pod.labels != old.labels:
            self.lift(record)
            record.matched_version = -1
            if not record.shape.terms.empty:
                self._reform(record)
        self._renew_devices(record, old)
        if has_cooldown(record.pod) or has_cooldown(old):
            self.cooldowns.come([record])
        if record.pod.annotations.get(ALLOCATED) != old.annotations.get(ALLOCATED):
            self._renew_reservation(record)
        lent = self.forms.is_lent(record.pod) != self.forms.is_lent(old)
        if lent or record.pod.annotations.get(ADMISSION) != old.annotations.get(ADMISSION):
            self._reform(record)
        gang = group_of(record.pod)
        if gang != record.group.id:
            self.lift(record)
            self.part(record)
            self.join([record], gang)
        elif record.group.pod_group is None:
            record.group.renew()
            self.assign_queue(record.group)

    def fold_runtime_class(self, event: Event) -> None:
        """A class came, changed or went: pods that name it and have no node may be something else now."""
        self.forms.runtime_classes.fold(event)
        for record in list(self.pods.values()):
            if not record.node and class_name(record.pod.spec) == event.key.name:
                self._reform(record)
                self.touch(record.group.id, again=True)

    def _reform(self, record: PodRecord) -> None:
        """The spec of a pod changed in more than its node: gates were lifted, or it was resized in place."""
        self.lift(record)
        old = record.shape
        grant = self.grant_of_pod(record.pod)
        record.form = self.forms.of(record.pod, self.queue_of_pod(record.pod), grant)
        record.podset = podset_of(record, grant.levels) if grant is not None else None
        record.ours = record.form.scheduler in self.schedulers
        record.rank()
        if record.shape is not old:
            self.room.neighbours.watch(record.shape.terms, self.placed)
            self.room.neighbours.leave(old.terms)
        record.group.priority_changed()

    def _renew_devices(self, record: PodRecord, old: Object) -> None:
        """What metadata says about the pod's devices may be something else now."""
        given = allotment_of(devices_of(record.pod.annotations))
        if given != record.given:
            self.lift(record)
            record.given = given
        if traits_of_pod(record.pod) != traits_of_pod(old):
            self._reform(record)

    def _renew_reservation(self, record: PodRecord) -> None:
        """The pod was given a reservation, mostly the one that was assumed."""
        name = reservation_of(record.pod.annotations) if record.pod.spec.get("nodeName") else ""
        if name != record.reservation:
            self.lift(record)
            record.reservation = name

    def queue_changed(self, group: Group) -> None:
        """The members of a group are in another queue, which may demand other nodes."""
        if self.forms.queue_nodes.matter:
            self._look_for_nodes(group)

    def regroup(self) -> None:
        """What queues demand of nodes is something else now."""
        for group in self.groups.values():
            if group.pending:
                self._look_for_nodes(group)

    def _look_for_nodes(self, group: Group) -> None:
        for record in list(group.pending.values()):
            self._reform(record)
        self.touch(group.id, again=True)

    def regrant(self, group: Group) -> None:
        """The quota that the group was granted is another one: its members go to other nodes."""
        for record in list(group.members.values()):
            self._reform(record)
            self.count(record)
