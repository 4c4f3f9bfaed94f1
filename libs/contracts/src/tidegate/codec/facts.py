"""Change sets between the log and the store."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice

from kube import Edit, Event, Events, Key, Manifest, Object, Outcome, Store, keys_of
from kube.bindings import BoundBodies, with_node, without_node
from tidegate.codec.blobs import BlobReader, BlobWriter
from tidegate.codec.garbage import keep_all, no_collection
from tidegate.fact.v1 import fact_pb2

MANY = 10_000
"""From so many objects on, what was loaded is better not looked through for garbage ever again."""

SNAPSHOT_PART = 500
"""Objects in one part of a snapshot: a few milliseconds of work. Objects share the blob of a template only inside one."""


@dataclass(frozen=True, slots=True)
class FactSet:
    """One change set as plain data."""

    at_ms: int
    changes: Sequence[Edit] = ()
    outcomes: tuple[Outcome, ...] = ()
    positions: Mapping[str, int] = field(default_factory=dict)


def encode(facts: FactSet) -> bytes:
    """The message of the log for a change set."""
    message = fact_pb2.ChangeSet(at_ms=facts.at_ms)
    kinds: dict[str, int] = {}
    _add_changes(message, facts.changes, kinds)
    for outcome in facts.outcomes:
        _add_outcome(message, outcome, kinds)
    message.positions.update(facts.positions)
    message.kinds.extend(kinds)
    return message.SerializeToString()


def _add_changes(message: fact_pb2.ChangeSet, edits: Iterable[Edit], kinds: dict[str, int]) -> None:
    """Edits that follow one another and are alike make one change: pods of one template share all but their names."""
    put, actors = BlobWriter(message.blobs).put, dict[str, int]()
    last: Edit | None = None
    look = ("", "", False, False, "", False, 0, 0, 0)

    def alike(edit: Edit) -> tuple[str, str, bool, bool, str, bool, int, int, int]:
        nonlocal last, look
        if last is None or not _shares_all(edit, last):
            kind, namespace, _ = edit.key
            parts = put(edit.metadata), put(edit.body), put(edit.status)
            look = (kind, namespace, edit.removed, edit.fresh, edit.actor, edit.node != "", *parts)
        last = edit
        return look

    for (kind, namespace, removed, fresh, actor, bound, metadata, body, status), group in groupby(edits, alike):
        members = list(group)
        change = message.changes.add(
            kind=kinds.setdefault(kind, len(kinds)),
            namespace=namespace,
            removed=removed,
            metadata=metadata,
            body=body,
            status=status,
            fresh=fresh,
            actor=actors.setdefault(actor, len(actors)),
        )
        if len(members) == 1:
            change.name, change.uid, change.node = members[0].key.name, members[0].uid, members[0].node
            continue
        change.names.extend([edit.key.name for edit in members])
        change.uids.extend([edit.uid for edit in members])
        if bound:
            change.nodes.extend([edit.node for edit in members])
    message.actors.extend(actors)


def _shares_all(edit: Edit, last: Edit) -> bool:
    """Whether two edits have the same parts, which is seen sooner than that they have equal ones."""
    return (
        edit.metadata is last.metadata
        and edit.body is last.body
        and edit.status is last.status
        and edit.actor == last.actor
        and edit.fresh is last.fresh
        and edit.removed is last.removed
        and (not edit.node) is (not last.node)
        and edit.key[0] == last.key[0]
        and edit.key[1] == last.key[1]
    )


def _add_outcome(message: fact_pb2.ChangeSet, outcome: Outcome, kinds: dict[str, int]) -> None:
    subject = outcome.subject
    message.outcomes.add(
        decision_id=outcome.decision_id,
        name=outcome.name,
        kind=kinds.setdefault(subject.kind, len(kinds)),
        namespace=subject.namespace,
        object=subject.name,
        applied=outcome.applied,
        reasons=outcome.reasons,
    )


Interest = Callable[[str, Manifest], bool]
"""(kind, metadata of a new object) → whether a reader keeps it at all."""


def fold(store: Store, message: fact_pb2.ChangeSet, revision: int, interest: Interest | None = None) -> Events:
    """Lay a change set over ``store``; what changed, in the order of the set. Folding it twice changes nothing more.

    With ``interest`` objects that are born uninteresting are never stored, and what happens to them is passed over.
    """
    blobs = BlobReader(message.blobs)
    kinds = list(message.kinds)
    events = Events()
    for change in message.changes:
        kind = kinds[change.kind]
        if change.fresh and interest and not interest(kind, blobs.get(change.metadata)):
            continue
        if change.removed:
            keys = keys_of(kind, change.namespace, change.names or (change.name,))
            events.add_all(gone for key in keys if (gone := store.remove(key)) is not None)
        elif change.fresh:
            _lay_fresh(store, change, kind, blobs, revision, events)
        else:
            _lay_over(store, change, kind, blobs, revision, events, all_kept=interest is None)
    return events


def _members(change: fact_pb2.Change) -> tuple[list[str], list[str], list[str]]:
    """The names, the uids and the nodes of the objects that a change is of. Lists: protobuf's own are slow to walk through."""
    names = list(change.names) or [change.name]
    return names, list(change.uids) or [change.uid], list(change.nodes) or [change.node] * len(names)


def _lay_fresh(
    store: Store, change: fact_pb2.Change, kind: str, blobs: BlobReader, revision: int, events: Events
) -> None:
    """Store objects that are new."""
    part, revision, spec_revision = blobs.get, change.revision or revision, change.spec_revision or revision
    metadata, body, status = part(change.metadata), part(change.body), part(change.status)
    names, uids, nodes = _members(change)
    keys = keys_of(kind, change.namespace, names)
    bound = BoundBodies()
    versions = [
        Object(key, uid, metadata, bound.on(body, node) if node else body, status, revision, spec_revision)
        for key, uid, node in zip(keys, uids, nodes, strict=True)
    ]
    happened = store.put_all(kind, versions)
    (events.add_run if all(event.old is None for event in happened) else events.add_all)(happened)


def _lay_over(
    store: Store,
    change: fact_pb2.Change,
    kind: str,
    blobs: BlobReader,
    revision: int,
    events: Events,
    *,
    all_kept: bool,
) -> None:
    """Store new versions: what changed is laid over what was, and what they share stays shared.

    Objects that are not there are passed over, unless all are kept.
    """
    part, revision, spec_revision = blobs.get, change.revision or revision, change.spec_revision or revision
    metadata, body, status = (
        part(number) if number else None for number in (change.metadata, change.body, change.status)
    )
    names, uids, nodes = _members(change)
    only_status = not (change.metadata or change.body or change.node or change.nodes)
    bound, known = BoundBodies(), list[Object]()
    versions: list[Object] = []
    for old, name, uid, node in zip(store.found(kind, change.namespace, names), names, uids, nodes, strict=True):
        if old is None:
            if all_kept:
                key, whole = Key(kind, change.namespace, name), bound.on(body or {}, node) if node else body
                versions.append(Object(key, uid, metadata, whole, status, revision, spec_revision))
            continue
        known.append(old)
        new_body = old.body if body is None else body
        versions.append(
            Object(
                old.key,
                uid,
                old.metadata if metadata is None else metadata,
                bound.on(new_body, node) if node else new_body,
                old.status if status is None else status,
                revision,
                old.spec_revision if only_status else spec_revision,
            )
        )
    happened = store.put_all(kind, versions)
    if len(set(names)) == len(known) == len(names) and [item.uid for item in known] == uids:
        events.add_alike(known, happened)
    else:
        events.add_all(happened)


def outcomes(message: fact_pb2.ChangeSet) -> Iterable[Outcome]:
    """The outcomes in a change set."""
    kinds = message.kinds
    for item in message.outcomes:
        subject = Key(kinds[item.kind], item.namespace, item.object)
        yield Outcome(item.decision_id, item.name, subject, item.applied, dict(item.reasons))


def encode_snapshot(objects: Iterable[Object], revision: int, at_ms: int, positions: Mapping[str, int]) -> bytes:
    """The whole state as one message."""
    with no_collection():
        return b"".join(snapshot_pieces(objects, revision, at_ms, positions))


def snapshot_pieces(
    objects: Iterable[Object], revision: int, at_ms: int, positions: Mapping[str, int]
) -> Iterator[bytes]:
    """The whole state as one message, in pieces to be joined; each takes little time."""
    head = fact_pb2.Snapshot(revision=revision, at_ms=at_ms)
    head.positions.update(positions)
    yield head.SerializeToString()
    rest = iter(objects)
    while part := list(islice(rest, SNAPSHOT_PART)):
        # Messages that are joined are one message, with the parts of both.
        yield fact_pb2.Snapshot(parts=[_snapshot_part(part, at_ms)]).SerializeToString()


def _snapshot_part(objects: Iterable[Object], at_ms: int) -> fact_pb2.ChangeSet:
    part, kinds = fact_pb2.ChangeSet(at_ms=at_ms), dict[str, int]()
    blobs = BlobWriter(part.blobs)
    for item in objects:
        body, node = without_node(item.body) if item.key.kind == "Pod" else (item.body, "")
        part.changes.add(
            kind=kinds.setdefault(item.key.kind, len(kinds)),
            namespace=item.key.namespace,
            name=item.key.name,
            uid=item.uid,
            metadata=blobs.put(item.metadata or None),
            body=blobs.put(body or None, passing=bool(node)),
            status=blobs.put(item.status or None),
            node=node,
            fresh=True,
            revision=item.revision,
            spec_revision=item.spec_revision,
        )
    part.kinds.extend(kinds)
    return part


def fold_snapshot(store: Store, snapshot: fact_pb2.Snapshot, interest: Interest | None = None) -> list[Event]:
    """Fill an empty store from a snapshot."""
    events: list[Event] = []
    with no_collection():
        for part in snapshot.parts:
            _fill(store, part, events, interest)
        if len(events) > MANY:
            keep_all()
    return events


def _fill(store: Store, part: fact_pb2.ChangeSet, events: list[Event], interest: Interest | None) -> None:
    """What fold() does with objects that are all fresh and have their own revisions, in less time."""
    get, kinds = BlobReader(part.blobs).get, list(part.kinds)
    for change in part.changes:
        kind, metadata, node = kinds[change.kind], get(change.metadata), change.node
        if interest and not interest(kind, metadata):
            continue
        body = with_node(get(change.body), node) if node else get(change.body)
        key = Key(kind, change.namespace, change.name)
        item = Object(key, change.uid, metadata, body, get(change.status), change.revision, change.spec_revision)
        events.append(store.put(item))
