"""The tree of queues. ``root`` and ``default`` are there even when no object says so."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kube import Key, Manifest, Object
from queue_manager.domain.quotas.queue_path import PATH, Step, Steps, read_path
from resources import Amounts, QuantityError, parse_amounts

QUEUE = "Queue.scheduling.volcano.sh"
ROOT = "root"
DEFAULT = "default"
CLOSED_BY_PARENT = "volcano.sh/closed-by-parent"

OPEN, CLOSING, CLOSED = "Open", "Closing", "Closed"


@dataclass(frozen=True, slots=True)
class Queue:
    """One queue as its object says. ``state`` is "" until it is known; amounts are empty where the spec has none."""

    name: str
    uid: str = ""
    parent: str = ROOT
    weight: int = 1
    weight_milli: int = 0
    """The weight in thousandths, where a path says it, which may be a fraction."""
    steps: tuple[Step, ...] = ()
    """The steps between it and the root, where a path says it."""
    priority: int = 0
    reclaimable: bool = True
    fifo: bool = False
    guarantee: Amounts = field(default_factory=dict)
    deserved: Amounts = field(default_factory=dict)
    capability: Amounts = field(default_factory=dict)
    state: str = ""
    closed_by_parent: bool = False
    lends: bool = True
    """Of an elastic quota: whether its idle minimum is lent."""
    shared_weight: Amounts = field(default_factory=dict)
    """Of an elastic quota: by what it takes part in the sharing of what is left, by resource."""
    namespace: str = ""
    """Of an elastic quota: where its object is."""
    placement: str = ""
    """Whether its work is packed or spread over nodes, if it says so."""
    node_groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The node groups that its work has to be in (``required``) or stay out of (``forbidden``), or would rather (``preferred``,
    ``avoided``)."""

    @property
    def key(self) -> Key:
        return queue_key(self.name)

    @property
    def is_open(self) -> bool:
        return self.state in ("", OPEN)


PLACEMENT = "tidegate.dev/placement"
"""Annotation of a queue: ``binpack`` or ``spread``."""


def queue_key(name: str) -> Key:
    """The key of the queue ``name``."""
    return Key(QUEUE, "", name)


def read_queue(item: Object) -> Queue:
    """The queue that ``item`` describes; what is missing or wrong there has its default."""
    spec, path = item.spec, read_path(item) if PATH in item.annotations else None
    parent = path.parent if path else str(spec.get("parent") or ROOT)
    return Queue(
        name=item.name,
        uid=item.uid,
        parent="" if item.name == ROOT else parent,
        weight=max(1, path.weight_milli // 1000) if path else _whole(spec.get("weight"), 1),
        weight_milli=path.weight_milli if path else 0,
        steps=path.steps if path else (),
        priority=_whole(spec.get("priority"), 0),
        reclaimable=spec.get("reclaimable") is not False,
        fifo=spec.get("dequeueStrategy") == "fifo",
        guarantee=amounts_of((spec.get("guarantee") or {}).get("resource")),
        deserved=amounts_of(spec.get("deserved")),
        capability=amounts_of(spec.get("capability")),
        state=str(item.status.get("state") or ""),
        closed_by_parent=item.annotations.get(CLOSED_BY_PARENT) == "true",
        placement=item.annotations.get(PLACEMENT, ""),
        node_groups=tuple(_node_groups(spec.get("affinity"))),
    )


_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
_NODE_GROUPS = (
    ("required", "nodeGroupAffinity", _REQUIRED),
    ("forbidden", "nodeGroupAntiAffinity", _REQUIRED),
    ("preferred", "nodeGroupAffinity", _PREFERRED),
    ("avoided", "nodeGroupAntiAffinity", _PREFERRED),
)


def _node_groups(affinity: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What is said of node groups; nothing for what cannot be read."""
    for name, kind, strictness in _NODE_GROUPS:
        said = affinity.get(kind) if isinstance(affinity, dict) else None
        groups = said.get(strictness) if isinstance(said, dict) else None
        if isinstance(groups, list) and groups:
            yield name, tuple(map(str, groups))


def amounts_of(listed: Manifest | None) -> Amounts:
    """The resource list as amounts, empty when there is none or one of its quantities is wrong."""
    try:
        return parse_amounts(listed)
    except (QuantityError, AttributeError):
        return {}


def _whole(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


class QueueTree:
    """All queues by name, and who is whose child. The root and ``others`` are there even when no object says so.

    A queue whose parent is missing, or that is its own ancestor, hangs from the root, so that what it runs still counts.
    """

    def __init__(self, root: str = ROOT, others: tuple[str, ...] = (DEFAULT,)) -> None:
        self.root = root
        self._built_in = (root, *others)
        self.queues: dict[str, Queue] = {name: self._made(name) for name in self._built_in}
        self._parents: dict[str, str] = {}
        self._children: dict[str, list[str]] = {}
        self._depths: list[list[str]] = []
        self._steps = Steps()

    def put(self, queue: Queue) -> bool:
        """Take in a queue; returns whether anything about it changed."""
        if self.queues.get(queue.name) == queue:
            return False
        old = self.queues.get(queue.name)
        self.queues[queue.name] = queue
        self._lead(queue.name, old.steps if old else (), queue.steps)
        self._depths = []
        return True

    def remove(self, name: str) -> None:
        """Forget a queue's object; a built-in queue goes on with its defaults."""
        old = self.queues.pop(name, None)
        self._lead(name, old.steps if old else (), ())
        if name in self._built_in:
            self.queues[name] = self._made(name)
        self._depths = []

    def by_depth(self) -> list[list[str]]:
        """The names by distance from the root; within one depth by the place of the parent, then by name."""
        self._link()
        return self._depths

    def parent_of(self, name: str) -> str:
        """The queue that ``name`` hangs from, "" for the root."""
        self._link()
        return self._parents.get(name, "")

    def children_of(self, name: str) -> list[str]:
        """The children of ``name``, by name."""
        self._link()
        return self._children.get(name, [])

    def line_of(self, name: str) -> list[str]:
        """``name`` and its ancestors, up to the root."""
        self._link()
        line = [name] if name in self.queues else []
        while line and self._parents[line[-1]]:
            line.append(self._parents[line[-1]])
        return line

    def is_leaf(self, name: str) -> bool:
        """Whether jobs may be in ``name``: it has no children and is not the root."""
        return name != self.root and not self.children_of(name)

    def _lead(self, name: str, before: tuple[Step, ...], after: tuple[Step, ...]) -> None:
        """The path of a queue is another one: the steps that paths lead through are there as queues."""
        if before == after:
            return
        for step in self._steps.all():
            self.queues.pop(step.name, None)
        self._steps.put(name, after)
        for step in self._steps.all():
            weight = max(1, step.weight_milli // 1000)
            self.queues[step.name] = Queue(step.name, parent=step.above, weight=weight, weight_milli=step.weight_milli)

    def _made(self, name: str) -> Queue:
        """A built-in queue that has no object."""
        return Queue(name, parent="" if name == self.root else self.root)

    def _link(self) -> None:
        if self._depths:
            return
        self._parents = {name: self._place(name) for name in sorted(self.queues)}
        self._children = {}
        for name, parent in self._parents.items():
            self._children.setdefault(parent, []).append(name)
        depth = [self.root]
        while depth:
            self._depths.append(depth)
            depth = [child for name in depth for child in self._children.get(name, ())]

    def _place(self, name: str) -> str:
        """The parent of ``name``, or the root where that is missing or below ``name`` itself."""
        parent = above = self.queues[name].parent
        seen: set[str] = set()
        while above in self.queues and above not in seen and above != name:
            seen.add(above)
            above = self.queues[above].parent
        if name == self.root:
            return ""
        return parent if parent in self.queues and above != name else self.root

    def check(self) -> list[str]:
        """What does not hold: every queue hangs, over its parents, from the root."""
        placed = {name for depth in self.by_depth() for name in depth}
        return [f"queue {name} does not hang from the root" for name in sorted(set(self.queues) - placed)]
