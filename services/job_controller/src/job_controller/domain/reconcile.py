"""The plug between the core and the kinds of jobs: what a kind sees of the world, and what it answers."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from kube import Decision, Event, Key, Object, Store


@dataclass(frozen=True, slots=True)
class Actions:
    """What should happen about one job now, and when to look again though nothing changes."""

    decisions: tuple[Decision, ...] = ()
    wake_at: int | None = None
    """Milliseconds since the epoch; None when only a change can give a reason to look again."""


@dataclass(frozen=True, slots=True)
class View:
    """The world as a kind of job may read it: the newest version of every object."""

    store: Store

    def get(self, key: Key) -> Object | None:
        """The object of that key, if there is one."""
        return self.store.get(key)

    def owned(self, uid: str) -> list[Object]:
        """The objects with an owner reference to ``uid``, in the order of their keys."""
        return self.store.owned_by(uid)

    def of_kind(self, kind: str) -> Mapping[Key, Object]:
        """All objects of the kind with group ``kind``, in the order of their arrival."""
        return self.store.of_kind(kind)

    def in_namespace(self, kind: str, namespace: str) -> Iterator[Object]:
        """The objects of the kind with group ``kind`` in one namespace, in the order of their arrival."""
        return self.store.in_namespace(kind, namespace)


class JobKind(Protocol):
    """One kind of job. It may remember what the levels do not tell (that a pod was evicted), and nothing else."""

    kind: str
    """The kind with its group, as in ``Key.kind``."""

    def observe(self, job: Object, event: Event, now: int) -> None:
        """Something changed: the job itself, or an object that it controls; always before ``reconcile``.

        ``job`` is its newest version, and of one change set the objects that a job owns come before the job itself.
        The first fold after a start gives every object with ``old`` None.
        """

    def reconcile(self, job: Object, view: View, now: int) -> Actions:
        """What should happen about the job; all decisions have the job as their subject, with its uid."""

    def forget(self, uid: str) -> None:
        """The job of that uid is gone."""


@runtime_checkable
class Watcher(Protocol):
    """What a kind of job may have besides: objects that it does not own and that its jobs wait for."""

    watches: tuple[str, ...]
    """Kinds with group."""

    def concerned(self, event: Event, view: View) -> Iterable[Key]:
        """The jobs to look at again because an object of a watched kind changed."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """How often in a row the decisions about a job were refused, and what was said; 0 times for what is not even tried."""

    times: int
    message: str
    noted: bool = False
    """Whether a note about it was decided."""


@runtime_checkable
class Impatient(Protocol):
    """What a kind of job may have besides: an end for jobs whose decisions are refused over and over."""

    def note_refusal(self, job: Object, view: View, now: int, refusal: Refusal) -> Actions:
        """Say on the job itself what is refused; it goes on to be tried."""

    def give_up(self, job: Object, view: View, now: int, refusal: Refusal) -> Actions:
        """End the job; nothing where it has ended."""
