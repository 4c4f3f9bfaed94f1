"""Queues: a tree in which every child stays inside what its parent has."""

from collections.abc import Iterable, Iterator

from admission.domain.changes import fixed
from admission.domain.errors import FieldError
from admission.domain.quantities import at_most, check_amounts, sound_amounts
from admission.domain.queue_choice import DEFAULT, ROOT, children_of, find_queue
from admission.domain.shapes import (
    AMOUNTS,
    ANYTHING,
    TEXT,
    TRUTH,
    WHOLE,
    Idle,
    ListOf,
    closed,
    entry,
    fields,
    one_of,
    within,
)
from admission.domain.world import Review, World
from kube import Manifest, Object
from resources import Amounts, add
from resources.amounts import format_amount

_NODE_GROUPS = fields(
    requiredDuringSchedulingIgnoredDuringExecution=ListOf(TEXT),
    preferredDuringSchedulingIgnoredDuringExecution=ListOf(TEXT),
)
QUEUE_SPEC = closed(
    weight=WHOLE,
    capability=AMOUNTS,
    deserved=AMOUNTS,
    guarantee=closed(resource=AMOUNTS),
    reclaimable=TRUTH,
    parent=TEXT,
    priority=WHOLE,
    dequeueStrategy=TEXT,
    type=Idle(TEXT),
    affinity=fields(nodeGroupAffinity=_NODE_GROUPS, nodeGroupAntiAffinity=_NODE_GROUPS),
    extendClusters=Idle(ListOf(ANYTHING)),
)
WEIGHT_MAX = 65_535
DEPTH_MAX = 5
GROUP_KIND = "PodGroup.scheduling.volcano.sh"


def default_queue(review: Review) -> None:
    """Weight 1, reclaimable, below the root, nobody held up by its head, and open when it is new."""
    spec = review.spec
    spec["weight"] = spec.get("weight") or 1
    spec.setdefault("reclaimable", True)
    spec.setdefault("dequeueStrategy", "traverse")
    if review.key.name != ROOT:
        spec["parent"] = spec.get("parent") or ROOT
    if review.creating:
        review.manifest["status"] = {"state": "Open"}


def check_queue_numbers(review: Review) -> Iterable[FieldError]:
    """Weight, priority and amounts are in their bounds: guarantee ≤ deserved ≤ capability."""
    spec = review.spec
    yield from within("spec.weight", spec["weight"], 1, WEIGHT_MAX)
    yield from within("spec.priority", spec.get("priority"), 0)
    yield from one_of("spec.dequeueStrategy", spec.get("dequeueStrategy"), ("fifo", "traverse"))
    for path, given in (
        ("spec.capability", spec.get("capability")),
        ("spec.deserved", spec.get("deserved")),
        ("spec.guarantee.resource", (spec.get("guarantee") or {}).get("resource")),
    ):
        yield from check_amounts(path, given)
    capability, deserved, guarantee = _capability(spec), _deserved(spec), _guarantee(spec)
    yield from at_most("spec.guarantee.resource", guarantee, deserved, "what the queue's spec.deserved is")
    yield from at_most("spec.deserved", deserved, capability, "the queue's spec.capability")
    uncovered = {name: amount for name, amount in guarantee.items() if name not in deserved}
    yield from at_most("spec.guarantee.resource", uncovered, capability, "the queue's spec.capability")


def check_queue_place(review: Review) -> Iterable[FieldError]:
    """The parent exists, is another queue, makes no circle, is not too deep and runs nothing itself."""
    name, parent = review.key.name, review.spec.get("parent") or ""
    if name == ROOT:
        if parent:
            yield FieldError("spec.parent", parent, "the root queue has no parent; leave it out")
        return
    if parent == name:
        yield FieldError("spec.parent", parent, f"queue {name} cannot be its own parent; name another one")
        return
    holder = find_queue(review.world, parent)
    if holder is None and parent not in (ROOT, DEFAULT):
        yield FieldError("spec.parent", parent, f"queue {parent} does not exist; create it first or name one that does")
        return
    above = [parent, *(queue.name for queue in ancestors(review.world, parent))]
    if name in above:
        yield FieldError("spec.parent", parent, f"queue {parent} is below {name}; a queue cannot be under itself")
    depth = sum(1 for queue in above if queue != ROOT) + 1
    if depth > DEPTH_MAX:
        yield FieldError("spec.parent", parent, f"the tree may be {DEPTH_MAX} queues deep; this would be {depth}")
    if parent != ROOT and parent != review.before("spec", "parent") and _runs_pods(review.world, parent):
        yield FieldError("spec.parent", parent, f"queue {parent} has running pods and so cannot become a parent")


def check_queue_share(review: Review) -> Iterable[FieldError]:
    """What the queue may have fits into its parent, and what its children have fits into it."""
    world, spec, name = review.world, review.spec, review.key.name
    if name == ROOT:
        if review.old is not None:
            for part in ("capability", "deserved", "guarantee"):
                new = spec.get(part)
                yield from fixed(f"spec.{part}", review.old.spec.get(part), new, "the root queue is the whole cluster")
        return
    parent = str(spec.get("parent") or ROOT)
    yield from _within_ancestors(world, parent, name, spec)
    if parent != ROOT:
        siblings = [queue for queue in children_of(world, parent) if queue.name != name]
        yield from _within_parent(find_queue(world, parent), siblings, spec)
    yield from _children_within(name, spec, children_of(world, name))
    yield from _below_within(world, name, name, _capability(spec))


def ancestors(world: World, name: str) -> Iterator[Object]:
    """The stored queues above ``name``, nearest first; ends at the root, and at a circle."""
    seen = {name}
    queue = find_queue(world, name)
    while queue is not None and queue.name != ROOT:
        parent = queue.spec.get("parent") or ROOT
        if parent in seen:
            return
        seen.add(parent)
        queue = find_queue(world, parent)
        if queue is not None:
            yield queue


def _within_ancestors(world: World, parent: str, name: str, spec: Manifest) -> Iterable[FieldError]:
    rest = _capability(spec)
    holder = find_queue(world, parent)
    for queue in [*([holder] if holder else []), *ancestors(world, parent)]:
        if queue.name == name:
            return
        limit = _capability(queue.spec)
        yield from at_most("spec.capability", rest, limit, f"the capability of {queue.name}, which {name} is under")
        rest = {resource: amount for resource, amount in rest.items() if resource not in limit}


def _within_parent(parent: Object | None, siblings: list[Object], spec: Manifest) -> Iterable[FieldError]:
    if parent is None:
        return
    for path, part in (("spec.deserved", _deserved), ("spec.guarantee.resource", _guarantee)):
        own, limit = part(spec), part(parent.spec)
        taken: Amounts = {}
        for sibling in siblings:
            taken = add(taken, part(sibling.spec))
        left = {resource: amount - taken.get(resource, 0) for resource, amount in limit.items()}
        names = ", ".join(sibling.name for sibling in siblings) or "no others"
        wanted = {resource: amount for resource, amount in own.items() if amount > 0}
        yield from at_most(path, wanted, left, f"what the parent {parent.name} has left besides {names}")


def _children_within(name: str, spec: Manifest, children: list[Object]) -> Iterable[FieldError]:
    for path, part in (("spec.deserved", _deserved), ("spec.guarantee.resource", _guarantee)):
        own = part(spec)
        total: Amounts = {}
        for child in children:
            total = add(total, part(child.spec))
        short = {resource: amount for resource, amount in total.items() if amount > own.get(resource, amount)}
        for resource in sorted(short):
            given, all_of_them = (format_amount(resource, amounts[resource]) for amounts in (own, short))
            rule = f"the children of {name} have {all_of_them} in all; lower theirs first, or raise this"
            yield FieldError(entry(path, resource), given, rule)


def _below_within(world: World, name: str, top: str, limit: Amounts) -> Iterable[FieldError]:
    """Whoever is below ``name`` and has ``top`` as the nearest that limits a resource stays inside ``limit``."""
    for child in children_of(world, name) if limit else []:
        own = _capability(child.spec)
        yield from at_most(
            "spec.capability", own, limit, f"the new capability of {top}; {child.name} below it has more"
        )
        rest = {resource: amount for resource, amount in limit.items() if resource not in own}
        yield from _below_within(world, child.name, top, rest)


def _runs_pods(world: World, name: str) -> bool:
    queue = find_queue(world, name)
    allocated = sound_amounts((queue.status.get("allocated") if queue else None) or {})
    return any(amount > 0 for amount in allocated.values()) or any(
        group.spec.get("queue") == name and group.status.get("phase") == "Running"
        for group in world.of_kind(GROUP_KIND).values()
    )


def check_queue_delete(old: Object, world: World) -> Iterable[FieldError]:
    """``default`` and ``root`` stay, and so does a queue that has children."""
    if old.name in (ROOT, DEFAULT):
        yield FieldError("metadata.name", old.name, f"queue {old.name} always exists and cannot be deleted")
    children = children_of(world, old.name)
    if children and old.name != ROOT:
        listed = ", ".join(child.name for child in children)
        yield FieldError("metadata.name", old.name, f"queue {old.name} has child queues ({listed}); delete them first")


def _capability(spec: Manifest) -> Amounts:
    return sound_amounts(spec.get("capability"))


def _deserved(spec: Manifest) -> Amounts:
    return sound_amounts(spec.get("deserved"))


def _guarantee(spec: Manifest) -> Amounts:
    return sound_amounts((spec.get("guarantee") or {}).get("resource"))
