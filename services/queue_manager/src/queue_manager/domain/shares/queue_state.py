"""Open, Closing, Closed: what commands and parents do to the states of queues.

Closing a queue closes the open queues below it and marks them; opening it opens only those that carry the mark. A queue
is Closing while anything is in it or below it, then Closed. The root is never closed, and no queue is open under one that
is not.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from kube import Decision, Key, Mutation, Object, Verb
from queue_manager.domain.quotas.queue_tree import (
    CLOSED,
    CLOSED_BY_PARENT,
    CLOSING,
    OPEN,
    QUEUE,
    ROOT,
    Queue,
    QueueTree,
)

COMMAND = "Command.bus.volcano.sh"


class StateReason(StrEnum):
    """Why the state of a queue changes, or a command is refused."""

    COMMANDED = "Commanded"
    NEW = "NewQueue"
    EMPTY = "QueueEmpty"
    PARENT_CLOSED = "ParentClosed"
    QUEUE_MISSING = "QueueMissing"
    ROOT_STAYS_OPEN = "RootStaysOpen"
    ACTION_UNKNOWN = "ActionUnknown"


@dataclass(frozen=True, slots=True)
class Command:
    """A user's command about a queue."""

    key: Key
    uid: str
    action: str
    queue: str
    created: str

    @property
    def order(self) -> tuple[str, Key]:
        return self.created, self.key


def read_command(item: Object) -> Command | None:
    """The command of ``item``; None when it is about something else than a Queue."""
    target = item.body.get("target") or {}
    if target.get("kind") != QUEUE.partition(".")[0]:
        return None
    return Command(item.key, item.uid, str(item.body.get("action") or ""), str(target.get("name") or ""), item.created)


@dataclass(frozen=True, slots=True)
class StateKeeper:
    """Decides states. ``occupied`` says whether a queue has groups or pods in it, or in a queue below it."""

    tree: QueueTree
    occupied: Callable[[str], bool]

    def obey(self, command: Command) -> Decision:
        """What comes of ``command``: the new states, or a refusal; the command is deleted in either case."""
        queue = self.tree.queues.get(command.queue)
        if queue is None:
            return _refuse(command, StateReason.QUEUE_MISSING, f"queue {command.queue} does not exist")
        if command.action == "OpenQueue":
            return self._open(command, queue)
        if command.action == "CloseQueue":
            return self._close(command, queue)
        known = "OpenQueue and CloseQueue"
        return _refuse(command, StateReason.ACTION_UNKNOWN, f"{command.action!r} is no action on a queue; {known} are")

    def _open(self, command: Command, queue: Queue) -> Decision:
        shut = self._shut_ancestor(queue.name)
        if shut:
            message = f"queue {queue.name} cannot be opened while its ancestor {shut.name} is {shut.state}"
            return _refuse(command, StateReason.PARENT_CLOSED, message)
        mutations = [_delete(command), _state(queue, OPEN)]
        mutations += [_mark(queue, None)] if queue.closed_by_parent else []
        for below in self._marked_below(queue.name):
            mutations += [_state(below, OPEN), _mark(below, None)]
        message = f"queue {queue.name} is open"
        return Decision("QueueOpened", queue.key, queue.uid, StateReason.COMMANDED, message, tuple(mutations))

    def _close(self, command: Command, queue: Queue) -> Decision:
        if queue.name == ROOT:
            return _refuse(command, StateReason.ROOT_STAYS_OPEN, "the root queue cannot be closed")
        mutations = [_delete(command)]
        if queue.is_open:
            mutations.append(_state(queue, self._shut_state(queue.name)))
        for below in self._open_below(queue.name):
            mutations += [_state(below, self._shut_state(below.name)), _mark(below, "true")]
        message = f"queue {queue.name} is {self._shut_state(queue.name)}: it takes no new work"
        return Decision("QueueClosed", queue.key, queue.uid, StateReason.COMMANDED, message, tuple(mutations))

    def settle(self, name: str) -> Decision | None:
        """What the state of the queue ``name`` has to become without a command; None when it is right."""
        queue = self.tree.queues.get(name)
        if queue is None or not queue.uid:
            return None
        if queue.state == "":
            return self._first_state(queue)
        if queue.state == CLOSING and not self.occupied(name):
            message = f"nothing is left in queue {name}: it is Closed"
            return Decision("QueueClosed", queue.key, queue.uid, StateReason.EMPTY, message, (_state(queue, CLOSED),))
        return None

    def _first_state(self, queue: Queue) -> Decision:
        shut = self._shut_ancestor(queue.name)
        if shut is None:
            state = (_state(queue, OPEN),)
            return Decision("QueueOpened", queue.key, queue.uid, StateReason.NEW, f"queue {queue.name} is open", state)
        message = f"queue {queue.name} is closed because its ancestor {shut.name} is {shut.state}"
        mutations = (_state(queue, self._shut_state(queue.name)), _mark(queue, "true"))
        return Decision("QueueClosed", queue.key, queue.uid, StateReason.PARENT_CLOSED, message, mutations)

    def _shut_state(self, name: str) -> str:
        return CLOSING if self.occupied(name) else CLOSED

    def _shut_ancestor(self, name: str) -> Queue | None:
        above = (self.tree.queues[ancestor] for ancestor in self.tree.line_of(name)[1:])
        return next((queue for queue in above if not queue.is_open), None)

    def _open_below(self, name: str) -> list[Queue]:
        return [queue for queue in self._below(name, lambda queue: True) if queue.is_open]

    def _marked_below(self, name: str) -> list[Queue]:
        return self._below(name, lambda queue: queue.closed_by_parent)

    def _below(self, name: str, enters: Callable[[Queue], bool]) -> list[Queue]:
        """The queues below ``name``, parents first, not going on below one that ``enters`` refuses."""
        found: list[Queue] = []
        for child in self.tree.children_of(name):
            queue = self.tree.queues[child]
            if enters(queue):
                found += [queue, *self._below(child, enters)]
        return found


def _refuse(command: Command, reason: StateReason, message: str) -> Decision:
    return Decision("QueueCommandRefused", command.key, command.uid, reason, message, (_delete(command),))


def _delete(command: Command) -> Mutation:
    return Mutation(Verb.DELETE, command.key, command.uid)


def _state(queue: Queue, state: str) -> Mutation:
    return Mutation(Verb.STATUS, queue.key, queue.uid, patch={"state": state})


def _mark(queue: Queue, value: str | None) -> Mutation:
    return Mutation(Verb.PATCH, queue.key, queue.uid, patch={"metadata": {"annotations": {CLOSED_BY_PARENT: value}}})
