"""The objects that are workloads of ClusterQueues, read into the books as they change."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from kube import Event, Key, Manifest, Object
from kube.runtime_classes import RUNTIME_CLASS, RuntimeClasses
from queue_manager.domain.admitting.readiness import Readiness
from queue_manager.domain.cohorts.cohort_books import CohortBooks
from queue_manager.domain.members.demand import Demand
from queue_manager.domain.members.members import LOCAL_QUEUE, group_named_by
from queue_manager.domain.pod_requests import PodRequests
from queue_manager.domain.workloads.account import WORKLOAD, Accounts, source_of
from queue_manager.domain.workloads.job_templates import JobTemplates
from queue_manager.domain.workloads.job_workload import JOB, OF_JOB, OwnShapes, is_job_workload, read_job, read_own
from queue_manager.domain.workloads.podset import PodSet
from queue_manager.domain.workloads.workload import Workload, read_pod, read_pod_group


@dataclass(slots=True)
class WorkloadSources:
    """``items`` are the objects behind the workloads; ``changed`` those of which something is new since it was cleared."""

    books: CohortBooks
    demand: Demand
    accounts: Accounts
    items: dict[Key, Object] = field(default_factory=dict)
    changed: dict[Key, None] = field(default_factory=dict)
    unshown: dict[Key, None] = field(default_factory=dict)
    """Workloads whose Workload object may say something old."""
    classes: RuntimeClasses = field(default_factory=RuntimeClasses)
    templates: JobTemplates = field(init=False)
    readiness: Readiness = field(default_factory=Readiness)
    podsets: Callable[[Key, Manifest | None], tuple[PodSet, ...]] = lambda group, controller: ()
    """The pod sets of a group that ask for a place in a topology, by its key and its controller."""
    _requests: PodRequests = field(default_factory=PodRequests)
    _shapes: OwnShapes = field(default_factory=OwnShapes)

    def __post_init__(self) -> None:
        self.templates = JobTemplates(self.classes)

    def fold_pod(self, event: Event) -> None:
        """Take in a change of a pod that names a LocalQueue, or did so before; one of a group or of a Job counts with that."""
        pod = event.new
        if pod is not None and LOCAL_QUEUE in pod.labels:
            self.readiness.fold(event)
            if not group_named_by(pod) and OF_JOB not in pod.annotations:
                self._put(event.key, pod)
                return
        else:
            self.readiness.fold(event)
        self._drop(event.key)

    def fold_group(self, event: Event) -> None:
        """Take in a change of a pod group."""
        if event.new is not None and LOCAL_QUEUE in event.new.labels:
            self._put(event.key, event.new)
        else:
            self._drop(event.key)

    def fold_other(self, event: Event) -> None:
        """Take in a change of an object that may be a job, or of a Workload."""
        if event.key.kind == WORKLOAD:
            self._fold_account(event)
            return
        if event.key.kind == RUNTIME_CLASS:
            self.classes.fold(event)
            self.templates.renew()
            self.renew(list(self.items))
            return
        self.templates.fold(event)
        if event.key.kind == JOB:
            if event.new is not None and is_job_workload(event.new):
                self._put(event.key, event.new)
            else:
                self._drop(event.key)

    def renew(self, keys: Iterable[Key]) -> None:
        """Read these workloads anew: their pods, or what counts for them, changed."""
        for key in keys:
            item = self.items.get(key)
            if item is not None:
                self._put(key, item)

    def _fold_account(self, event: Event) -> None:
        old, new = event.old, event.new
        source = self.accounts.fold(event)
        if old is not None and (new is None or old.metadata is not new.metadata):
            before = source_of(old)
            if before is not None and before != source:
                self._leave(event.key, before)
        if source is None:
            return
        if source != event.key:
            self.renew([source])
        elif new is not None:
            self._put(source, new)
        else:
            self._drop(source)

    def _leave(self, key: Key, before: Key) -> None:
        """The Workload stood for ``before`` and does so no more."""
        self.accounts.forget(before)
        if before == key:
            self._drop(before)
        else:
            self.renew([before])

    def show(self, key: Key) -> None:
        """The Workload object of this workload may say something old."""
        self.unshown[key] = None

    def _put(self, key: Key, item: Object) -> None:
        self.items[key] = item
        self.changed[key] = None
        self.books.put(self._read(key, item))

    def _drop(self, key: Key) -> None:
        if self.items.pop(key, None) is not None:
            self.changed[key] = None
            self.books.forget(key)

    def _completed(self, item: Object) -> Object:
        """The job with what runtime classes add to its pods."""
        body = self.classes.in_templates(item.body)
        return item if body is item.body else item.changed(body=body)

    def _read(self, key: Key, item: Object) -> Workload:
        priorities, account = self.books.priorities, self.accounts.of(key)
        if key.kind == "Pod":
            return read_pod(item, self._requests.of(item), priorities, account)
        if key.kind in (JOB, WORKLOAD):
            item = self._completed(item)
        if key.kind == JOB:
            return read_job(item, priorities, account)
        if key.kind == WORKLOAD:
            return read_own(item, priorities, account, self._shapes)
        tally = self.demand.tallies.get(key)
        held = tally.held() if tally is not None else {}
        # One of its pods speaks for all, whatever labels they have; before there are any, the template that they will have.
        sample = next(iter(tally.members.values()), None) if tally is not None else None
        spec = sample.spec if sample is not None else self.templates.of(item.controller)
        live = tally.live if tally is not None else 0
        podsets = self.podsets(key, item.controller)
        return read_pod_group(item, held, live, spec, priorities, self.books.classes, podsets, account)
