"""The gate of pod sets that want to be near each other: quota is given only to who also finds a place in the topology."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from kube import Event, Key, Manifest, Object
from queue_manager.domain.cohorts.cohort_books import CohortBooks
from queue_manager.domain.members.members import GROUP, group_named_by, role_of
from queue_manager.domain.rooms.node_room import NodeRoom, Spots
from queue_manager.domain.rooms.topology_room import TopologyRoom
from queue_manager.domain.workloads.job_templates import JobTemplates
from queue_manager.domain.workloads.job_workload import JOB, waits_for_more
from queue_manager.domain.workloads.podset import PodSet, asks_for_place, merged, podset_of


class TopologyGate:
    """Knows what is free on the nodes, what was promised of it, and which pod sets each group consists of."""

    def __init__(self, books: CohortBooks, templates: JobTemplates) -> None:
        self._books = books
        self._templates = templates
        self._nodes = NodeRoom()
        self._room = TopologyRoom(self._nodes, books.flavors)
        self._members: dict[Key, dict[Key, PodSet]] = {}
        self._started = False
        self._unread: dict[Key, Object] | None = {}
        """All pods on nodes, as long as no flavor has a topology: where they are matters to nobody then."""

    def fold_node(self, event: Event) -> None:
        """Take in a change of a node."""
        self._nodes.fold_node(event)

    def fold_pods(self, run: Sequence[Event]) -> None:
        """Take in where pods that are alike are, and what they ask for if they are of a group."""
        new, old = run[0].new, run[0].old
        if self._unread is None:
            for event in run:
                self._nodes.fold_pod(event)
        elif new is not None and new.spec.get("nodeName"):
            self._unread.update({event.key: event.object for event in run})
        elif old is not None and old.spec.get("nodeName"):
            for event in run:
                self._unread.pop(event.key, None)
        if old is not None and new is not None and old.metadata is new.metadata:
            return
        # Who asks for a place now, or did so before.
        if any(asks_for_place(item.annotations) for item in (old, new) if item is not None):
            for event in run:
                self._fold_member(event.new, event.object)

    def _fold_member(self, new: Object | None, pod: Object) -> None:
        key = Key(GROUP, pod.namespace, group_named_by(pod))
        members = self._members.setdefault(key, {})
        members.pop(pod.key, None)
        podset = podset_of(pod.annotations, pod.spec, 1, role_of(pod)) if new is not None and key.name else None
        if podset is not None:
            members[pod.key] = podset
        if not members:
            del self._members[key]

    def podsets(self, group: Key, controller: Manifest | None) -> tuple[PodSet, ...]:
        """The sets of a group: those of its job's templates, else of the pods that are there."""
        return self._templates.podsets_of(controller) or merged(self._members.get(group, {}).values())

    def obstacle(self, flavor: str, podsets: Sequence[PodSet]) -> str:
        """Why the sets find no place now; "" when they do."""
        return self._room.obstacle(flavor, podsets)

    def fits(
        self, podsets: Sequence[PodSet], flavors: Mapping[str, str], without: AbstractSet[Key] = frozenset()
    ) -> bool:
        """Whether a workload with these flavors finds a place, the workloads ``without`` being gone."""
        return not podsets or not isinstance(self._spots(podsets, flavors, without), str)

    def keep(
        self, key: Key, podsets: Sequence[PodSet], flavors: Mapping[str, str], without: AbstractSet[Key] = frozenset()
    ) -> None:
        """Keep a place for a workload that is given quota, or will be when ``without`` are gone, until its pods have it."""
        if podsets and key not in self._nodes.promised:
            spots = self._spots(podsets, flavors, without)
            if not isinstance(spots, str):
                self._nodes.promise(key, spots)

    def shrunk(self, keys: Iterable[Key], items: Mapping[Key, Object]) -> Iterator[Key]:
        """Which of ``keys`` are Jobs that have not started, and never will: fewer pods are left than they start with."""
        for key in keys:
            item = items.get(key)
            if item is not None and key.kind == JOB and waits_for_more(item) and not self._nodes.places(key):
                yield key

    def flavors_changed(self) -> None:
        """Flavors or their topologies are others now."""
        self._room.forget()
        if self._unread is not None and any(flavor.levels for flavor in self._books.flavors.values()):
            unread, self._unread = self._unread, None
            for pod in unread.values():
                self._nodes.fold_pod(Event(None, pod))

    def renew(self) -> None:
        """Forget the places of workloads that hold no quota any more; where there is more room, let those who wait look again."""
        books, nodes = self._books, self._nodes
        for key in [key for key in nodes.promised if key not in books.held and key not in books.promises]:
            nodes.freed |= nodes.release(key)
        if not self._started:
            self._started = True
            for key, admission in books.held.items():
                if not nodes.places(key) and key in books.workloads:
                    podsets = books.workloads[key].shape.podsets_of([item.size for item in admission.sets])
                    self.keep(key, podsets, admission.flavors)
        if nodes.freed:
            nodes.freed = False
            for name, queue in books.queues.items():
                if any(
                    books.flavors[flavor].levels
                    for group in queue.quota.groups
                    for flavor in group.flavors
                    if flavor in books.flavors
                ):
                    books.touch(name)

    def _spots(self, podsets: Sequence[PodSet], flavors: Mapping[str, str], without: AbstractSet[Key]) -> Spots | str:
        """By the first flavor that has a topology: pods are laid out by one."""
        for flavor in dict.fromkeys(flavors.values()):
            if self._books.flavors[flavor].levels:
                return self._room.spots(flavor, podsets, without)
        return ()
