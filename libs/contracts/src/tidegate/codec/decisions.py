"""Decisions between the cores of services and their logs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, repeat

from kube import Decision, Key, Manifest, Mutation, Verb, api_version_of, keys_of
from tidegate.codec.blobs import BlobReader, BlobWriter
from tidegate.decision.v1 import decision_pb2


@dataclass(frozen=True, slots=True)
class CommitHead:
    """What a commit says of itself: by whom, in which term, on what it was decided, and when."""

    service: str
    epoch: int
    decided_on: int
    now_ms: int
    inputs: Mapping[str, int] = field(default_factory=dict)
    leader_started: bool = False
    resting: Sequence[Key] = ()


@dataclass(frozen=True, slots=True)
class Private:
    """What a commit carries of a private state: its ``content``, or ``parts`` by their names, empty where one is gone.

    Parts that are no whole are what changed since the commit before.
    """

    content: bytes = b""
    parts: Mapping[str, bytes] = field(default_factory=dict)
    is_whole: bool = True


NOTHING_PRIVATE = Private(is_whole=False)


def encode_commit(
    head: CommitHead, decisions: Iterable[tuple[str, Decision]], private: Private = NOTHING_PRIVATE
) -> bytes:
    """The message of a service's log for decisions taken together; each comes with its id."""
    message = decision_pb2.Commit(
        service=head.service,
        epoch=head.epoch,
        decided_on=head.decided_on,
        now_ms=head.now_ms,
        inputs=head.inputs,
        private_state=private.content,
        private_parts=[
            decision_pb2.PrivatePart(name=name, content=content) for name, content in sorted(private.parts.items())
        ],
        private_whole=private.is_whole and not private.content,
        leader_started=head.leader_started,
        resting=[_ref(key, "") for key in head.resting],
    )
    blobs = BlobWriter(message.blobs)
    for decision_id, decision in decisions:
        item = message.decisions.add(
            id=decision_id,
            name=decision.name,
            subject=_ref(decision.subject, decision.subject_uid),
            reason=decision.reason,
            message=decision.message,
            payload=blobs.put(decision.payload),
        )
        _add_mutations(item, decision.mutations, blobs)
    return message.SerializeToString()


def _add_mutations(item: decision_pb2.Decision, mutations: Iterable[Mutation], blobs: BlobWriter) -> None:
    """Mutations that follow one another and are alike go together: the pods of a gang share all but names and nodes."""

    def alike(mutation: Mutation) -> tuple[Verb, str, str, int | None, bool, int, int, int]:
        kind, namespace, _ = mutation.key
        metadata, body = None, None
        patch = mutation.devices if mutation.patch is None else mutation.patch
        if mutation.manifest is not None:
            metadata, body, patch = split(mutation.manifest)
        parts = blobs.put(metadata), blobs.put(body), blobs.put(patch)
        return (mutation.verb, kind, namespace, mutation.grace_seconds, mutation.node != "", *parts)

    for (verb, kind, namespace, grace_seconds, placed, metadata, body, patch), group in groupby(mutations, alike):
        members = list(group)
        added = item.mutations.add(
            verb=verb.value,
            ref=decision_pb2.ObjectRef(kind=kind, namespace=namespace),
            metadata=metadata,
            body=body,
            patch=patch,
            grace_seconds=grace_seconds,
        )
        if len(members) == 1:
            added.ref.name, added.ref.uid, added.node = members[0].key.name, members[0].uid, members[0].node
            continue
        added.names.extend([mutation.key.name for mutation in members])
        added.uids.extend([mutation.uid for mutation in members])
        if placed:
            added.nodes.extend([mutation.node for mutation in members])


def split(manifest: Manifest) -> tuple[Manifest, Manifest, Manifest | None]:
    """A manifest's metadata without its identity, its body and its status."""
    identity = ("name", "namespace", "uid", "resourceVersion")
    metadata = {name: part for name, part in (manifest.get("metadata") or {}).items() if name not in identity}
    body = {name: part for name, part in manifest.items() if name not in ("apiVersion", "kind", "metadata", "status")}
    return metadata, body, manifest.get("status")


def decode_commit(message: decision_pb2.Commit) -> Iterator[tuple[str, Decision]]:
    """The decisions of a commit with their ids."""
    blobs = BlobReader(message.blobs)
    for item in message.decisions:
        yield (
            item.id,
            Decision(
                item.name,
                key_of_ref(item.subject),
                item.subject.uid,
                item.reason,
                item.message,
                tuple(mutation for group in item.mutations for mutation in _mutations(group, blobs)),
                blobs.get(item.payload) if item.payload else None,
            ),
        )


def decision_heads(message: decision_pb2.Commit) -> Iterator[tuple[str, Decision]]:
    """The decisions of a commit without their mutations and payloads: for those who only tell of them."""
    for item in message.decisions:
        yield item.id, Decision(item.name, key_of_ref(item.subject), item.subject.uid, item.reason, item.message)


def _mutations(item: decision_pb2.Mutation, blobs: BlobReader) -> Iterator[Mutation]:
    """The same change to one object, or to several."""
    verb, ref = Verb(item.verb), item.ref
    grace = item.grace_seconds if item.HasField("grace_seconds") else None
    part = blobs.get(item.patch) if item.patch else None
    names, uids, nodes = item.names or (ref.name,), item.uids or (ref.uid,), item.nodes or repeat(item.node)
    keys = keys_of(ref.kind, ref.namespace, names)
    if verb is Verb.CREATE:
        return (
            Mutation(verb, key, uid, manifest=_manifest(key, item, blobs, part))
            for key, uid in zip(keys, uids, strict=True)
        )
    if verb is Verb.BIND:
        return (
            Mutation(verb, key, uid, None, None, node, part) for key, uid, node in zip(keys, uids, nodes, strict=False)
        )
    return (Mutation(verb, key, uid, None, part, grace_seconds=grace) for key, uid in zip(keys, uids, strict=True))


def _manifest(key: Key, item: decision_pb2.Mutation, blobs: BlobReader, status: Manifest | None) -> Manifest:
    identity = {"name": key.name} | ({"namespace": key.namespace} if key.namespace else {})
    manifest: Manifest = {
        "apiVersion": api_version_of(key.kind),
        "kind": key.kind.partition(".")[0],
        "metadata": {**identity, **blobs.get(item.metadata)},
        **blobs.get(item.body),
    }
    return manifest | ({"status": status} if status else {})


def _ref(key: Key, uid: str) -> decision_pb2.ObjectRef:
    return decision_pb2.ObjectRef(kind=key.kind, namespace=key.namespace, name=key.name, uid=uid)


def key_of_ref(ref: decision_pb2.ObjectRef) -> Key:
    """The key that a reference names."""
    return Key(ref.kind, ref.namespace, ref.name)
