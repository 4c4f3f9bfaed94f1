"""Which queue a job or group goes to, and whether that queue takes it."""

from collections.abc import Iterable

from admission.domain.errors import FieldError
from admission.domain.world import Review, World
from kube import Key, Object

KIND = "Queue.scheduling.volcano.sh"
ROOT, DEFAULT = "root", "default"
NAMESPACE_QUEUE = "scheduling.volcano.sh/queue-name"


def find_queue(world: World, name: str) -> Object | None:
    """The Queue ``name``, or None."""
    return world.get(Key(KIND, "", name))


def state_of(queue: Object | None) -> str:
    """``Open``, ``Closing``, ``Closed`` or ``Unknown``; a queue of which nothing else is known is open."""
    return str((queue.status.get("state") if queue else None) or "Open")


def children_of(world: World, name: str) -> list[Object]:
    """The queues right under ``name``, by name; the root's are also those that name no parent."""
    found = [
        queue
        for queue in world.of_kind(KIND).values()
        if queue.name not in (name, ROOT) and (queue.spec.get("parent") or ROOT) == name
    ]
    return sorted(found, key=lambda queue: queue.name)


def choose_queue(review: Review) -> str:
    """The queue of an object that names none: the one it is in, else its namespace's, else ``default``."""
    before = str(review.before("spec", "queue") or "")
    return before or review.namespace_annotation(NAMESPACE_QUEUE) or DEFAULT


def check_queue(path: str, review: Review, name: str) -> Iterable[FieldError]:
    """The queue exists, is open, and is a leaf other than the root."""
    queue = find_queue(review.world, name)
    if name == ROOT:
        yield FieldError(path, name, "the root queue takes no jobs; name a leaf queue below root")
    elif queue is None and name != DEFAULT:
        yield FieldError(path, name, f"queue {name} does not exist; create it or name one that does")
    elif state_of(queue) != "Open":
        yield FieldError(path, name, f"queue {name} is {state_of(queue)}, not Open; open it or name another queue")
    else:
        children = children_of(review.world, name)
        if children:
            listed = ", ".join(child.name for child in children[:3])
            yield FieldError(path, name, f"queue {name} is no leaf queue; name one below it, such as {listed}")
