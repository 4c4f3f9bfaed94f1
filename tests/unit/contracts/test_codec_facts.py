"""Change sets and snapshots: what is read is what was written."""

from collections.abc import Sequence

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from kube import Edit, Key, Manifest, Object, Outcome, Store
from tidegate.codec import facts
from tidegate.codec.blobs import BlobReader, BlobWriter
from tidegate.codec.facts import FactSet
from tidegate.fact.v1 import fact_pb2

KINDS = ("Pod", "Node", "Job.batch.volcano.sh", "PodGroup.scheduling.volcano.sh", "Unknown.example.com")
names = st.sampled_from(["a", "b", "c.d", "é"])
keys = st.builds(Key, st.sampled_from(KINDS), st.sampled_from(["", "default", "team"]), names)
leaves = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5)
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2))
parts = st.dictionaries(st.sampled_from(["spec", "data", "labels", "phase"]), values, max_size=3)
bodies = st.fixed_dictionaries({}, optional={"spec": st.dictionaries(names, leaves, max_size=2), "data": parts})


@st.composite
def change_sets(draw: st.DrawFn) -> tuple[Edit, ...]:
    """Changes as the gateway makes them: what is not fresh changes an object that is there."""
    there: set[Key] = set()
    changes: list[Edit] = []
    for number in range(draw(st.integers(0, 8))):
        key, actor = draw(keys), draw(st.sampled_from(["", "user", "node/n1"]))
        if key not in there:
            fresh = Edit(key, f"u{number}", draw(parts), draw(bodies), draw(parts), fresh=True, actor=actor)
            changes.append(fresh)
            there.add(key)
        elif draw(st.booleans()):
            changes.append(Edit(key, "", removed=True, actor=actor))
            there.discard(key)
        else:
            optional = (draw(st.none() | part) for part in (parts, bodies, parts))
            changes.append(Edit(key, "u", *optional, node=draw(st.sampled_from(["", "n1"])), actor=actor))
    return tuple(changes)


def expected(changes: Sequence[Edit], revision: int) -> dict[Key, tuple[Manifest, Manifest, Manifest, int, int]]:
    """The specification of a fold, in plain words: parts that are named replace the old ones."""
    state: dict[Key, tuple[Manifest, Manifest, Manifest, int, int]] = {}
    for change in changes:
        if change.removed:
            state.pop(change.key, None)
            continue
        metadata, body, status, _, spec_revision = state.get(change.key, ({}, {}, {}, 0, 0))
        if change.metadata is not None or change.body is not None or change.node or change.fresh:
            spec_revision = revision
        metadata = metadata if change.metadata is None else change.metadata
        body = body if change.body is None else change.body
        status = status if change.status is None else change.status
        if change.node:
            body = {**body, "spec": {**(body.get("spec") or {}), "nodeName": change.node}}
        state[change.key] = (metadata, body, status, revision, spec_revision)
    return state


def contents(store: Store) -> dict[Key, tuple[Manifest, Manifest, Manifest, int, int]]:
    return {
        key: (item.metadata, item.body, item.status, item.revision, item.spec_revision)
        for key, item in store.objects.items()
    }


def decode(payload: bytes) -> fact_pb2.ChangeSet:
    return fact_pb2.ChangeSet.FromString(payload)


@given(change_sets())
def test_a_folded_change_set_is_what_was_encoded(changes: tuple[Edit, ...]) -> None:
    store = Store()
    facts.fold(store, decode(facts.encode(FactSet(5, changes))), 7)
    assert contents(store) == expected(changes, 7)


@given(change_sets())
def test_folding_twice_changes_nothing_more(changes: tuple[Edit, ...]) -> None:
    message, store = decode(facts.encode(FactSet(5, changes))), Store()
    facts.fold(store, message, 7)
    once = contents(store)
    facts.fold(store, message, 7)
    assert contents(store) == once


@given(change_sets())
def test_the_events_lead_from_the_old_state_to_the_new_one(changes: tuple[Edit, ...]) -> None:
    store, replayed = Store(), dict[Key, Object]()
    for event in facts.fold(store, decode(facts.encode(FactSet(5, changes))), 7):
        assert replayed.get(event.key) is event.old
        if event.new is None:
            del replayed[event.key]
        else:
            replayed[event.key] = event.new
    assert replayed == store.objects


@given(change_sets(), st.integers(1, 3))
@settings(max_examples=50)
def test_a_snapshot_holds_every_object_with_its_revisions(changes: tuple[Edit, ...], revision: int) -> None:
    store, loaded = Store(), Store()
    facts.fold(store, decode(facts.encode(FactSet(5, changes))), revision)
    content = facts.encode_snapshot(store.objects.values(), 9, 1_000, {"gang_scheduler": 4})
    snapshot = fact_pb2.Snapshot.FromString(content)
    events = facts.fold_snapshot(loaded, snapshot)
    assert contents(loaded) == contents(store)
    assert list(loaded.objects) == list(store.objects)
    assert {key: item.uid for key, item in loaded.objects.items()} == {k: item.uid for k, item in store.objects.items()}
    assert [event.old for event in events] == [None] * len(store.objects)
    assert (snapshot.revision, snapshot.at_ms, dict(snapshot.positions)) == (9, 1_000, {"gang_scheduler": 4})


def test_a_snapshot_of_several_parts_is_whole(monkeypatch: object) -> None:
    items = [Object(Key("Pod", "default", f"p{n}"), f"u{n}", {"n": n}, {}, {}, 3, 2) for n in range(4_321)]
    snapshot = fact_pb2.Snapshot.FromString(facts.encode_snapshot(items, 9, 1, {}))
    loaded = Store()
    facts.fold_snapshot(loaded, snapshot)
    assert len(snapshot.parts) == 9
    assert contents(loaded) == {item.key: (item.metadata, {}, {}, 3, 2) for item in items}


def test_what_many_objects_share_is_sent_and_parsed_once() -> None:
    """A hundred pods of one template: one body in the message, and one in memory."""
    template = {"spec": {"containers": [{"name": "main", "image": "x" * 1000}]}}
    changes = tuple(Edit(Key("Pod", "default", f"p{n}"), f"u{n}", {}, template, {}, fresh=True) for n in range(100))
    payload = facts.encode(FactSet(5, changes))
    store = Store()
    facts.fold(store, decode(payload), 1)
    assert len(payload) < 10_000
    assert len({id(item.body) for item in store.objects.values()}) == 1


def test_equal_parts_share_one_blob_whoever_made_them() -> None:
    blobs: list[bytes] = []
    writer = BlobWriter(blobs)
    shared = {"a": 1}
    references = [writer.put(part) for part in (shared, {"a": 1}, shared, {"b": 2}, None, {})]
    assert references == [1, 1, 1, 2, 0, 3]
    assert [orjson.loads(blob) for blob in blobs] == [{"a": 1}, {"b": 2}, {}]
    reader = BlobReader(blobs)
    assert reader.get(1) is reader.get(1)
    assert (reader.get(0), reader.get(3)) == ({}, {})


def test_a_binding_is_the_node_alone_and_leaves_the_template_shared() -> None:
    """What is sent is the node's name; the pod's containers stay the ones of the template."""
    key, template = Key("Pod", "default", "p"), {"spec": {"containers": [{"image": "x" * 1000}]}}
    store = Store()
    facts.fold(store, decode(facts.encode(FactSet(5, (Edit(key, "u", {}, template, {}, fresh=True),)))), 1)
    before = store.objects[key]
    payload = facts.encode(FactSet(6, (Edit(key, "u", node="n1"),)))
    facts.fold(store, decode(payload), 2)
    bound = store.objects[key]
    assert len(payload) < 60
    assert bound.spec["nodeName"] == "n1"
    assert bound.spec["containers"] is before.spec["containers"]
    assert "nodeName" not in before.spec


outcomes = st.builds(
    Outcome,
    st.text("abc/123", max_size=8),
    names,
    keys,
    st.booleans(),
    st.dictionaries(st.sampled_from(["", "Pod/a"]), st.text(max_size=5), max_size=2),
)


@given(st.lists(outcomes, max_size=4), st.dictionaries(names, st.integers(0, 2**63), max_size=2), change_sets())
@settings(max_examples=50)
def test_outcomes_and_positions_come_back(
    given_outcomes: list[Outcome], positions: dict[str, int], changes: tuple[Edit, ...]
) -> None:
    message = decode(facts.encode(FactSet(5, changes, tuple(given_outcomes), positions)))
    assert list(facts.outcomes(message)) == given_outcomes
    assert dict(message.positions) == positions
    actors = [message.actors[change.actor] for change in message.changes for _ in change.names or (change.name,)]
    assert actors == [change.actor for change in changes]
