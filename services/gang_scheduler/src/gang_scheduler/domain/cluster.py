"""The cluster as facts tell it, kept in the form in which decisions are made."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial

from gang_scheduler.domain.books.disruption_budgets import BUDGET, DisruptionBudgets
from gang_scheduler.domain.books.node_books import NodeBooks
from gang_scheduler.domain.books.pod_forms import traits_of_pod
from gang_scheduler.domain.devices.node_inventory import DESCRIPTIONS
from gang_scheduler.domain.dra.claim_status import without_ended
from gang_scheduler.domain.dra.requests import CLAIM as RESOURCE_CLAIM
from gang_scheduler.domain.dra.requests import CLASS
from gang_scheduler.domain.dra.slices import SLICE
from gang_scheduler.domain.nodes.node_metric import METRIC
from gang_scheduler.domain.pods.groups import Group
from gang_scheduler.domain.pods.pod_record import FINISHED, PodRecord
from gang_scheduler.domain.queues.entitlement import Entitlement
from gang_scheduler.domain.reservations.reservation_terms import RESERVATION, terms_of_reservation
from gang_scheduler.domain.terms.gang_terms import ADMISSION, KUBERNETES_GROUP, SIGS_GROUPS, VOLCANO_GROUP, GroupId
from gang_scheduler.domain.topology.hyper_nodes import HYPER_NODE, LAYERS
from kube import Event, Key, Manifest, Object, runs
from kube.elastic_quotas import ELASTIC_QUOTA
from kube.runtime_classes import RUNTIME_CLASS
from kube.scheduling_pause import SWITCH, Pause, pause_of
from kube.volumes import CLAIM, STORAGE_CLASS, VOLUME


@dataclass(slots=True)
class Cluster(NodeBooks):
    """The pods, and all that they refer to."""

    classes: dict[str, int] = field(default_factory=dict)
    """The value of every priority class."""

    polite: set[str] = field(default_factory=set)
    """The priority classes whose pods never take room from others."""

    budgets: DisruptionBudgets = field(default_factory=DisruptionBudgets)
    pause: Pause | None = None
    """Who paused scheduling: while it is so nothing is placed and nobody is evicted."""

    _folds: dict[str, Callable[[Event], None]] = field(init=False)

    def __post_init__(self) -> None:
        NodeBooks.__post_init__(self)
        self._folds = {
            "Node": self.fold_node,
            **dict.fromkeys(DESCRIPTIONS, self.fold_description),
            "Namespace": self._fold_namespace,
            "PriorityClass.scheduling.k8s.io": self._fold_priority_class,
            RUNTIME_CLASS: self.fold_runtime_class,
            "Queue.scheduling.volcano.sh": self._fold_queue,
            ELASTIC_QUOTA: self._fold_elastic_quota,
            RESOURCE_CLAIM: self.fold_claim,
            SLICE: self._fold_devices,
            CLASS: self._fold_devices,
            **dict.fromkeys((HYPER_NODE, LAYERS), self.room.hyper_nodes.fold),
            BUDGET: self.budgets.fold,
            VOLCANO_GROUP: self._fold_pod_group,
            **dict.fromkeys((*SIGS_GROUPS, KUBERNETES_GROUP), self._fold_pod_group),
            RESERVATION: self._fold_reservation,
            **dict.fromkeys((CLAIM, VOLUME, STORAGE_CLASS), self._fold_volume),
            SWITCH.kind: self._fold_switch,
        }

    def fold(self, events: Iterable[Event], now: int = 0) -> None:
        """Take in one change set, as of ``now``. What pods refer to is read before the pods, what tells of them after."""
        pods: list[Sequence[Event]] = []
        metrics: list[Event] = []
        for run in runs(events):
            kind = run[0].key.kind
            if kind == "Pod":
                pods.append(run)
            elif kind == METRIC:
                metrics += run
            elif kind in self._folds:
                for event in run:
                    self._folds[kind](event)
        for run in pods:
            self.run_times.fold(run, now)
            self.fold_pods(run)
        for event in metrics:
            self.fold_metric(event)

    def hear(self, queues: dict[str, Entitlement]) -> None:
        """New entitlements of the queues are in force. Whoever waits in a queue that was closed is to be told so."""
        ledger = self.room.ledger
        shut = {name for name, queue in (ledger.queues or {}).items() if queue.open and not _is_open(queues.get(name))}
        for group in list(self.groups.values()) if shut else ():
            if group.queue in shut and group.pending:
                self.touch(group.id, again=True)
        if ledger.hear(queues):
            for record in self.placed():
                if record.charged is not None:
                    ledger.charge(record.charged, record.shape.requests, 1)
        if self.forms.queue_nodes.hear():
            self.regroup()

    def _fold_pod_group(self, event: Event) -> None:
        key = event.key
        gang = GroupId("gang", key.namespace, key.name)
        group = self.groups.get(gang)
        if group is None:
            if event.new is None:
                return
            group = self.groups[gang] = Group(gang)
        known = group.pod_group
        if known is not None and known.kind == VOLCANO_GROUP and key.kind != VOLCANO_GROUP:
            return
        if event.new is None and (known is None or known.kind != key.kind):
            return
        was_in = group.let_in
        granted = known.annotations.get(ADMISSION) if known is not None else None
        renewed = group.describe(event.new)
        if granted != (event.new.annotations.get(ADMISSION) if event.new is not None else None):
            self.regrant(group)
        self.assign_queue(group)
        self.touch(gang, again=renewed or group.let_in != was_in)
        self.forget_if_empty(group)

    def _fold_reservation(self, event: Event) -> None:
        """Room is asked for, held, or let go of; its owners among those who wait are tried again."""
        reserved, new = self.room.reserved, event.new
        known = reserved.by_name.get(event.key.name)
        if new is None:
            reserved.remove(event.key.name)
        else:
            node = str(new.status.get("nodeName") or "")
            reserved.put(new, self._template_of(new), self.on_node.get(node, {}))
        if known is not None and not known.record.shape.terms.empty:
            self.room.neighbours.leave(known.record.shape.terms)
        if new is None:
            return
        owners = terms_of_reservation(new).owners
        for group in list(self.groups.values()):
            if any(owner.owns(record.pod) for record in group.pending.values() for owner in owners):
                self.touch(group.id, again=True)

    def _template_of(self, item: Object) -> PodRecord:
        """The pod that a reservation's template describes. It is in no gang, and waits in no queue."""
        template = item.spec.get("template") or {}
        given = template.get("metadata") or {}
        metadata = {**given, "labels": given.get("labels") or {}, "creationTimestamp": item.created}
        pod = Object(item.key, item.uid, metadata, {"spec": template.get("spec") or {}})
        spec, space = pod.spec, str(given.get("namespace") or "default")
        form = self.forms.catalog.form_of(spec, space, pod.labels, traits_of_pod(pod))
        by_class = self.classes.get(str(spec.get("priorityClassName") or ""))
        if "priority" not in spec and by_class is not None:
            form = form._replace(priority=by_class)
        record = PodRecord(item.key, pod, form, ours=False)
        record.group = Group(GroupId("pod", "", item.name))
        if not form.shape.terms.empty:
            self.room.neighbours.watch(form.shape.terms, self.placed)
        record.rank()
        return record

    def _fold_volume(self, event: Event) -> None:
        """Those who wait with a claim may have a place now, or lost it."""
        self.room.volumes.fold(event)
        one = event.key.kind == CLAIM
        for record in self.claimants.of_volume(event.key) if one else self.claimants.of_volumes():
            if record.slot < 0:
                self.touch(record.group.id, again=True)

    def _fold_devices(self, event: Event) -> None:
        """What devices there are, or what they are called, changed: whoever waits for some is tried again."""
        pools = self.room.claim_book.pools
        (pools.fold_slice if event.key.kind == SLICE else pools.fold_class)(event)
        for record in self.claimants.of_devices():
            if not record.node:
                self.touch(record.group.id, again=True)

    def releases(self, in_flight: AbstractSet[Key]) -> Iterator[tuple[Object, Manifest]]:
        """The resource claims that pods have which are not there any more, and what their status should say."""
        later: dict[Key, None] = {}
        book = self.room.claim_book
        for key in sorted(self.claimants.unreleased):
            claim = book.claims.get(key)
            if claim is None:
                continue
            if book.busy(key) or key in in_flight:
                later[key] = None
            elif (patch := without_ended(claim, partial(self._runs, key.namespace))) is not None:
                later[key] = None
                yield claim, patch
        self.claimants.unreleased = later

    def _runs(self, namespace: str, user: Manifest) -> bool:
        record = self.pods.get(Key("Pod", namespace, str(user.get("name"))))
        return record is not None and record.pod.uid == user.get("uid") and record.standing not in FINISHED

    def _fold_elastic_quota(self, event: Event) -> None:
        """The pods of whole namespaces may be in another queue now; in one that was not heard of yet they wait."""
        self._reassign(self.quotas.fold(event))

    def _fold_namespace(self, event: Event) -> None:
        name, new = event.key.name, event.new
        self.namespace_annotations[name] = new.annotations if new else {}
        neighbours = self.room.neighbours
        labels = {"kubernetes.io/metadata.name": name, **(new.labels if new else {})}
        if neighbours.namespaces.get(name) != labels:
            neighbours.namespaces[name] = labels
            if neighbours.active:
                neighbours.recount(self.placed())
        self._reassign({name})

    def _reassign(self, namespaces: AbstractSet[str]) -> None:
        """The pods of ``namespaces`` that name no queue may be in another one now."""
        for group in list(self.groups.values()) if namespaces else ():
            if group.id.namespace in namespaces and group.pod_group is None:
                self.assign_queue(group)
                self.touch(group.id, again=True)

    def _fold_priority_class(self, event: Event) -> None:
        if event.new is None:
            self.classes.pop(event.key.name, None)
            self.polite.discard(event.key.name)
        else:
            never = event.new.body.get("preemptionPolicy") == "Never"
            (self.polite.add if never else self.polite.discard)(event.key.name)
            self.classes[event.key.name] = int(event.new.body.get("value") or 0)
        for group in self.groups.values():
            group.priority_changed()

    def _fold_switch(self, event: Event) -> None:
        if event.key == SWITCH:
            self.pause = pause_of(event.new)

    def _fold_queue(self, event: Event) -> None:
        self.room.ledger.created[event.key.name] = event.new.created if event.new else ""


def _is_open(queue: Entitlement | None) -> bool:
    return queue is not None and queue.open
