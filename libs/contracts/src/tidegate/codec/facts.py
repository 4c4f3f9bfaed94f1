"""Change sets between the log and the store."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kube import Event, Key, Manifest, Object, Outcome, Store
from tidegate.codec.blobs import BlobReader, BlobWriter
from tidegate.codec.garbage import keep_all, no_collection
from tidegate.fact.v1 import fact_pb2

MANY = 10_000
"""From so many objects on, what was loaded is better not looked through for garbage ever again."""

SNAPSHOT_PART = 2000
"""Objects in one part of a snapshot: parts that share a template share its blob only inside one part."""


@dataclass(frozen=True, slots=True)
class Changed:
    """What one object became: the parts that are new (None: as before), or that it is gone."""

    key: Key
    uid: str
    metadata: Manifest | None = None
    body: Manifest | None = None
    status: Manifest | None = None
    node: str = ""
    fresh: bool = False
    removed: bool = False
    actor: str = ""


@dataclass(frozen=True, slots=True)
class FactSet:
    """One change set as plain data."""

    at_ms: int
    changes: tuple[Changed, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    positions: Mapping[str, int] = field(default_factory=dict)


def encode(facts: FactSet) -> bytes:
    """The message of the log for a change set."""
    message = fact_pb2.ChangeSet(at_ms=facts.at_ms)
    kinds: dict[str, int] = {}
    actors: dict[str, int] = {}
    blobs = BlobWriter(message.blobs)
    add = message.changes.add
    for change in facts.changes:
        key = change.key
        add(
            kind=kinds.setdefault(key.kind, len(kinds)),
            namespace=key.namespace,
            name=key.name,
            uid=change.uid,
            removed=change.removed,
            metadata=blobs.put(change.metadata),
            body=blobs.put(change.body),
            status=blobs.put(change.status),
            node=change.node,
            fresh=change.fresh,
            actor=actors.setdefault(change.actor, len(actors)),
        )
    for outcome in facts.outcomes:
        _add_outcome(message, outcome, kinds)
    message.positions.update(facts.positions)
    message.kinds.extend(kinds)
    message.actors.extend(actors)
    return message.SerializeToString()


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


def fold(store: Store, message: fact_pb2.ChangeSet, revision: int, interest: Interest | None = None) -> list[Event]:
    """Lay a change set over ``store``; what changed, in the order of the set. Folding it twice changes nothing more.

    With ``interest`` objects that are born uninteresting are never stored, and what happens to them is passed over.
    """
    blobs = BlobReader(message.blobs)
    kinds = list(message.kinds)
    events: list[Event] = []
    for change in message.changes:
        key = Key(kinds[change.kind], change.namespace, change.name)
        if change.removed:
            gone = store.remove(key)
            if gone is not None:
                events.append(gone)
            continue
        old = None if change.fresh else store.get(key)
        if old is None and interest and not (change.fresh and interest(key.kind, blobs.get(change.metadata))):
            continue
        events.append(store.put(_version(key, change, old, blobs, revision)))
    return events


def _version(key: Key, change: fact_pb2.Change, old: Object | None, blobs: BlobReader, revision: int) -> Object:
    metadata = blobs.get(change.metadata) if change.metadata or old is None else old.metadata
    body = blobs.get(change.body) if change.body or old is None else old.body
    status = blobs.get(change.status) if change.status or old is None else old.status
    if change.node:
        body = with_node(body, change.node)
    only_status = not (change.metadata or change.body or change.node or old is None)
    spec_revision = old.spec_revision if only_status and old is not None else revision
    if change.revision:
        return Object(key, change.uid, metadata, body, status, change.revision, change.spec_revision)
    return Object(key, change.uid, metadata, body, status, revision, spec_revision)


def with_node(body: Manifest, node: str) -> Manifest:
    """A pod's body with spec.nodeName set; all other parts are shared with ``body``."""
    return {**body, "spec": {**(body.get("spec") or {}), "nodeName": node}}


def without_node(body: Manifest) -> tuple[Manifest, str]:
    """A bound pod's body as it was before, the same for all pods of one template, and its node."""
    spec = body.get("spec") or {}
    node = spec.get("nodeName")
    if not node or not isinstance(node, str):
        return body, ""
    return {**body, "spec": {name: part for name, part in spec.items() if name != "nodeName"}}, node


def outcomes(message: fact_pb2.ChangeSet) -> Iterable[Outcome]:
    """The outcomes in a change set."""
    kinds = message.kinds
    for item in message.outcomes:
        subject = Key(kinds[item.kind], item.namespace, item.object)
        yield Outcome(item.decision_id, item.name, subject, item.applied, dict(item.reasons))


def encode_snapshot(objects: Iterable[Object], revision: int, at_ms: int, positions: Mapping[str, int]) -> bytes:
    """The whole state as one message."""
    with no_collection():
        return _encode_snapshot(objects, revision, at_ms, positions)


def _encode_snapshot(objects: Iterable[Object], revision: int, at_ms: int, positions: Mapping[str, int]) -> bytes:
    message = fact_pb2.Snapshot(revision=revision, at_ms=at_ms)
    message.positions.update(positions)
    part, blobs, kinds = fact_pb2.ChangeSet(), BlobWriter([]), dict[str, int]()
    for count, item in enumerate(objects):
        if count % SNAPSHOT_PART == 0:
            part.kinds.extend(kinds)
            part = message.parts.add(at_ms=at_ms)
            blobs, kinds = BlobWriter(part.blobs), {}
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
    return message.SerializeToString()


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
