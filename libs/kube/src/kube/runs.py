"""What happens to many objects alike, told once: the pods of a gang come, are bound and start together."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from kube.bindings import template_of
from kube.keys import Manifest
from kube.objects import Object
from kube.store import Event


class Events(list[Event]):
    """Events in their order, cut into runs of what is alike: what holds for the first of a run holds for all of it.

    The objects of a run are of one kind and namespace, and share metadata, status and body, before and after. They differ
    in name, uid and revisions, and pods in the node that they are bound to.
    """

    __slots__ = ("_cuts",)

    def __init__(self) -> None:
        super().__init__()
        self._cuts: list[int] = []

    def add(self, event: Event) -> None:
        """One event by itself."""
        self._cuts.append(len(self))
        self.append(event)

    def add_run(self, run: Sequence[Event]) -> None:
        """Events that are alike."""
        if run:
            self._cuts.append(len(self))
            self.extend(run)

    def add_all(self, events: Iterable[Event]) -> None:
        """Events of which nobody knows yet which are alike."""
        for run in _found_runs(events):
            self.add_run(run)

    def add_alike(self, olds: Sequence[Object], events: Sequence[Event]) -> None:
        """To all of ``olds``, which are of one kind, the same happened."""
        self._cuts += [len(self) + cut for cut in _cuts(olds)]
        self.extend(events)

    def undo(self, length: int) -> list[Event]:
        """Take back all but the first ``length`` events, where a run ended; those taken back."""
        undone = self[length:]
        del self[length:]
        while self._cuts and self._cuts[-1] >= length:
            self._cuts.pop()
        return undone

    def runs(self) -> Iterator[Sequence[Event]]:
        """The runs, in their order."""
        if len(self._cuts) == 1:
            return iter((self,))
        return (self[first:last] for first, last in pairwise((*self._cuts, len(self))))


def runs(events: Iterable[Event]) -> Iterator[Sequence[Event]]:
    """The runs of ``events``: those that they come in, else they are looked for."""
    return events.runs() if isinstance(events, Events) else _found_runs(events)


def are_alike(items: Sequence[Object]) -> bool:
    """Whether objects of one kind share all parts, and the namespace, but for the nodes in their bodies."""
    return len(_cuts(items)) <= 1


def _cuts(items: Sequence[Object]) -> list[int]:
    """Where among objects of one kind others begin than those before."""
    cuts: list[int] = []
    namespace, metadata, status, body = "", None, None, None
    for place, item in enumerate(items):
        if (
            item.metadata is not metadata
            or item.status is not status
            or item.key[1] != namespace
            or (item.body is not body and not (body is not None and _same_template(item.body, body)))
        ):
            cuts.append(place)
            namespace, metadata, status, body = item.key[1], item.metadata, item.status, item.body
    return cuts


def _found_runs(events: Iterable[Event]) -> Iterator[Sequence[Event]]:
    run: list[Event] = []
    for event in events:
        if run and not _alike(event, run[0]):
            yield run
            run = []
        run.append(event)
    if run:
        yield run


def _alike(one: Event, other: Event) -> bool:
    if one.key[0] != other.key[0] or one.key[1] != other.key[1]:
        return False
    if not _same_parts(one.old, other.old) or not _same_parts(one.new, other.new):
        return False
    if one.old is None or one.new is None or other.old is None or other.new is None:
        return True
    # What goes on is the same object or not, and has the same body, and so the same node, or not.
    same, like = one.old.uid == one.new.uid, other.old.uid == other.new.uid
    return same is like and (one.old.body is one.new.body) is (other.old.body is other.new.body)


def _same_parts(one: Object | None, other: Object | None) -> bool:
    """Whether two objects share all parts, but for the node in their bodies."""
    if one is None or other is None:
        return one is other
    if one.metadata is not other.metadata or one.status is not other.status:
        return False
    return one.body is other.body or _same_template(one.body, other.body)


def _same_template(body: Manifest, other: Manifest) -> bool:
    return type(body) is type(other) and template_of(body) is template_of(other)
