"""What the pods of each queue ask for and hold, kept up to date pod by pod.

A *tally* sums the pods of one group, or of one namespace's pods without a group that name the same queue. A change of a
pod touches its tally only; what a tally adds to its queue is brought up to date once per decision, however many pods
have changed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kube import Event, Key, Object
from queue_manager.domain.members.groups import COMPLETED, INQUEUE, RUNNING, UNKNOWN, Group, in_quota, read_group
from queue_manager.domain.members.members import (
    BARE,
    QUEUE_NAME,
    Member,
    Place,
    domain_of,
    is_same,
    place_of,
    queue_named_by,
    read_member,
)
from queue_manager.domain.pod_requests import PodRequests
from queue_manager.domain.quotas.queue_tree import DEFAULT
from queue_manager.domain.quotas.sums import accumulate
from resources import Amounts, largest


@dataclass(slots=True)
class Tally:
    """The sums of one group's pods (``key`` is the PodGroup's) or of a namespace's bare pods of one queue."""

    key: Key
    hint: str = ""
    members: dict[Key, Member] = field(default_factory=dict)
    pending: Amounts = field(default_factory=dict)
    bound: Amounts = field(default_factory=dict)
    live: int = 0
    queue: str = ""
    counted_request: Amounts = field(default_factory=dict)
    counted_bound: Amounts = field(default_factory=dict)
    counted_live: int = 0
    counted_phase: str = ""

    @property
    def is_bare(self) -> bool:
        return self.key.kind == BARE

    def held(self) -> Amounts:
        """What the live pods ask for, bound or not."""
        total = dict(self.bound)
        accumulate(total, self.pending, 1)
        return total


@dataclass(slots=True)
class QueueTotals:
    """The sums of one queue's tallies: what competes for room, what has it, live pods, and its groups by phase."""

    request: Amounts = field(default_factory=dict)
    allocated: Amounts = field(default_factory=dict)
    live: int = 0
    phases: dict[str, int] = field(default_factory=dict)
    tallies: dict[Key, None] = field(default_factory=dict)

    @property
    def groups(self) -> int:
        return sum(self.phases.values())


class Demand:
    """The books: groups, tallies, and the totals by queue."""

    def __init__(self) -> None:
        self.groups: dict[Key, Group] = {}
        self.tallies: dict[Key, Tally] = {}
        self.totals: dict[str, QueueTotals] = {}
        self.allocated: dict[str, Amounts] = {}
        """What bound pods hold, by kind of tree: see ``domain_of``."""
        self.dirty: dict[Key, None] = {}
        self._members: dict[Key, Member] = {}
        self._namespace_queues: dict[str, str] = {}
        self._namespace_quotas: dict[str, str] = {}
        self._in_namespace: dict[str, dict[Key, None]] = {}
        self._requests = PodRequests()

    def fold_pods(self, run: Sequence[Event]) -> None:
        """Take in a change of pods that are alike; they mostly were so before, and have one entry in the books then."""
        known = [self._members.get(event.key) for event in run]
        if known.count(known[0]) == len(known):
            self._fold_alike([event.key for event in run], run[0], known[0])
            return
        for event, before in zip(run, known, strict=True):
            self._fold_alike([event.key], event, before)

    def _fold_alike(self, keys: Sequence[Key], event: Event, before: Member | None) -> None:
        """What ``event`` tells of one pod holds for all of ``keys``, which all were ``before`` in the books.

        Costs next to nothing when it is not about their place, queue or request.
        """
        old, new = event.old, event.new
        if before is not None and old is not None and new is not None and is_same(old, new):
            place = place_of(new)
            if place is not before.place:
                self._move_to(place, keys, before)
            return
        if before is not None:
            self._leave(keys, before)
        if new is not None:
            self._enter(keys, read_member(new, self._requests), new)

    def fold_group(self, event: Event) -> None:
        """Take in a change of a pod group."""
        key = event.key
        if event.new is None:
            self.groups.pop(key, None)
        else:
            self.groups[key] = in_quota(read_group(event.new), self._tally(key).hint)
        self.dirty[key] = None

    def fold_namespace(self, event: Event) -> None:
        """Take in which queue the bare pods of a namespace belong to when they name none."""
        queue = event.new.annotations.get(QUEUE_NAME, "") if event.new else ""
        name = event.key.name
        if queue != self._namespace_queues.get(name, ""):
            self._namespace_queues[name] = queue
            self.dirty.update(self._in_namespace.get(name, {}))

    def own_namespaces(self, quotas: Mapping[str, str]) -> None:
        """Take in the quotas to which the bare pods of namespaces belong when they name nothing."""
        for name in {*quotas, *self._namespace_quotas}:
            if quotas.get(name) != self._namespace_quotas.get(name):
                self.dirty.update(self._in_namespace.get(name, {}))
        self._namespace_quotas = dict(quotas)

    def in_namespace(self, namespace: str) -> Iterator[Tally]:
        """The tallies of ``namespace``."""
        return (self.tallies[key] for key in self._in_namespace.get(namespace, ()))

    def touch(self, queues: Mapping[str, object] | set[str]) -> None:
        """Look again at all tallies of ``queues``: they opened or closed."""
        for queue in sorted(queues):
            if queue in self.totals:
                self.dirty.update(self.totals[queue].tallies)

    def post(self, competes: Callable[[Tally], bool]) -> dict[str, None]:
        """Bring the totals up to date; returns the queues whose totals changed.

        ``competes`` says whether the pending pods of a tally count: whether its queue is open and let it in.
        """
        changed: dict[str, None] = {}
        dirty, self.dirty = self.dirty, {}
        for key in dirty:
            tally = self.tallies.get(key)
            if tally is not None:
                self._post_one(tally, competes, changed)
        return changed

    def _post_one(self, tally: Tally, competes: Callable[[Tally], bool], changed: dict[str, None]) -> None:
        group = self.groups.get(tally.key)
        queue = self._queue_of(tally, group)
        if queue != tally.queue:
            self._uncount(tally, changed)
            tally.queue = queue
        totals = self.totals.setdefault(queue, QueueTotals())
        totals.tallies[tally.key] = None
        request = self._request_of(tally, group) if competes(tally) else dict(tally.bound)
        phase = (group.phase or "Pending") if group else ""
        self._move(totals, tally, (request, dict(tally.bound), tally.live, phase))
        changed[queue] = None
        if not tally.members and group is None:
            self._uncount(tally, changed)
            del self.tallies[tally.key]
            del self._in_namespace[tally.key.namespace][tally.key]

    def _uncount(self, tally: Tally, changed: dict[str, None]) -> None:
        totals = self.totals.get(tally.queue)
        if totals is None:
            return
        self._move(totals, tally, ({}, {}, 0, ""))
        totals.tallies.pop(tally.key, None)
        changed[tally.queue] = None

    def _move(self, totals: QueueTotals, tally: Tally, counted: tuple[Amounts, Amounts, int, str]) -> None:
        """Count ``counted`` for the tally in place of what was counted before."""
        request, bound, live, phase = counted
        domain = self.allocated.setdefault(domain_of(tally.queue), {})
        accumulate(domain, tally.counted_bound, -1)
        accumulate(domain, bound, 1)
        accumulate(totals.request, tally.counted_request, -1)
        accumulate(totals.request, request, 1)
        accumulate(totals.allocated, tally.counted_bound, -1)
        accumulate(totals.allocated, bound, 1)
        totals.live += live - tally.counted_live
        for name, step in ((tally.counted_phase, -1), (phase, 1)):
            if name:
                totals.phases[name] = totals.phases.get(name, 0) + step
        tally.counted_request, tally.counted_bound, tally.counted_live, tally.counted_phase = counted

    @staticmethod
    def _request_of(tally: Tally, group: Group | None) -> Amounts:
        held = tally.held()
        if group is None or tally.members or group.phase in (RUNNING, UNKNOWN, COMPLETED):
            return held
        return largest(held, group.min_resources)

    def _queue_of(self, tally: Tally, group: Group | None) -> str:
        if group is not None:
            return group.queue
        space = tally.key.namespace
        return tally.hint or self._namespace_quotas.get(space) or self._namespace_queues.get(space) or DEFAULT

    def _tally(self, key: Key) -> Tally:
        tally = self.tallies.get(key)
        if tally is None:
            tally = self.tallies[key] = Tally(key)
            self._in_namespace.setdefault(key.namespace, {})[key] = None
        return tally

    def _enter(self, keys: Sequence[Key], member: Member, pod: Object) -> None:
        tally = self._tally(member.tally)
        if not tally.members:
            # Known before it is needed: when the group is gone, its last pods still are where they were.
            tally.hint = queue_named_by(pod)
            group = self.groups.get(tally.key)
            if group is not None:
                self.groups[tally.key] = in_quota(group, tally.hint)
        self._put(keys, tally, member)
        self._count(tally, member, len(keys))

    def _leave(self, keys: Sequence[Key], member: Member) -> None:
        tally = self.tallies[member.tally]
        for key in keys:
            del self._members[key], tally.members[key]
        self._count(tally, member, -len(keys))

    def _move_to(self, place: Place, keys: Sequence[Key], before: Member) -> None:
        tally = self.tallies[before.tally]
        self._count(tally, before, -len(keys))
        member = Member(before.tally, place, before.request, before.spec, before.role)
        self._put(keys, tally, member)
        self._count(tally, member, len(keys))

    def _put(self, keys: Sequence[Key], tally: Tally, member: Member) -> None:
        entries = dict.fromkeys(keys, member)
        self._members.update(entries)
        tally.members.update(entries)

    def _count(self, tally: Tally, member: Member, step: int) -> None:
        """Count so many members more, or fewer."""
        if member.place is Place.PENDING:
            accumulate(tally.pending, member.request, step)
            tally.live += step
        elif member.place is Place.BOUND:
            accumulate(tally.bound, member.request, step)
            tally.live += step
        self.dirty[tally.key] = None

    def reserved(self, group: Group) -> Amounts:
        """What a group that was let in has not taken yet of its minimum."""
        tally = self.tallies.get(group.key)
        bound = tally.bound if tally else {}
        return {name: max(0, amount - bound.get(name, 0)) for name, amount in group.min_resources.items()}

    def holds(self, group_key: Key, let_in: bool) -> Amounts:
        """What a group counts for in its namespace's quota."""
        tally, group = self.tallies.get(group_key), self.groups.get(group_key)
        held = tally.held() if tally else {}
        if group is not None and let_in and group.phase in ("", "Pending", INQUEUE):
            return largest(held, group.min_resources)
        return held

    def check(self) -> list[str]:
        """Which sums are not those of their members."""
        wrong = []
        for tally in self.tallies.values():
            for place, kept in ((Place.PENDING, tally.pending), (Place.BOUND, tally.bound)):
                total: Amounts = {}
                for member in tally.members.values():
                    if member.place is place:
                        accumulate(total, member.request, 1)
                if total != kept:
                    wrong.append(f"{tally.key}: {place.name.lower()} pods sum to {total}, the books say {kept}")
        return wrong
