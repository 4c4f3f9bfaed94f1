"""Whatever happens in the cluster, the change set that tells of it leads a reader to the same state."""

import contextlib
import itertools
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_gateway.domain.cluster import Cluster
from kube import Edit, Event, Key, Manifest, Object, Store
from tidegate.codec import facts
from tidegate.codec.facts import FactSet
from tidegate.fact.v1 import fact_pb2

KEYS = [Key("Pod", "default", "p"), Key("Pod", "team", "p"), Key("ConfigMap", "default", "c"), Key("Node", "", "n")]
KEYS += [Key("ConfigMap", "default", "d"), Key("Namespace", "", "team")]
steps = st.lists(
    st.tuples(
        st.sampled_from(["create", "body", "metadata", "status", "bind", "delete", "gone", "finalizer", "owner"]),
        st.sampled_from(KEYS),
        st.sampled_from(KEYS),
        st.integers(0, 3),
    ),
    max_size=14,
)


def do(cluster: Cluster, what: str, key: Key, other: Key, number: int) -> None:
    item = cluster.store.get(key)
    if item is None:
        if what in ("create", "bind"):
            cluster.create(key, {}, {"spec": {"n": number}}, {"phase": "Pending"})
        return
    match what:
        case "body":
            cluster.replace(item, item.metadata, {**item.body, "spec": {**item.spec, "n": number}})
        case "metadata":
            cluster.replace(item, {**item.metadata, "labels": {"n": str(number)}}, item.body)
        case "finalizer":
            cluster.replace(item, {**item.metadata, "finalizers": ["x"] if number else []}, item.body)
        case "owner":
            owner = cluster.store.get(other)
            if owner is not None and other != key:
                cluster.replace(item, {**item.metadata, "ownerReferences": [_reference(owner)]}, item.body)
        case "status":
            cluster.set_status(item, {"n": number, "phase": ["Pending", "Running", "Succeeded", "Failed"][number]})
        case "bind" if key.kind == "Pod" and not item.spec.get("nodeName"):
            cluster.bind(item, "n", {**item.metadata, "annotations": {"n": str(number)}} if number else item.metadata)
        case "delete":
            cluster.delete(item, number or None)
        case "gone":
            cluster.gone(item)


def _reference(owner: Object) -> Manifest:
    return {"apiVersion": "v1", "kind": owner.kind, "name": owner.name, "uid": owner.uid, "controller": True}


def numbered(first: int) -> Callable[[], str]:
    count = itertools.count(first)
    return lambda: f"uid-{next(count)}"


def a_cluster() -> Cluster:
    return Cluster(numbered(1), now=1_000_000, revision=1)


def run(cluster: Cluster, taken: list[tuple[str, Key, Key, int]]) -> None:
    for step in taken:
        do(cluster, *step)


def commit(cluster: Cluster, reader: Store) -> list[Event]:
    """The next change set, told to a reader; what happened in the cluster meanwhile."""
    changes = tuple(
        Edit(e.key, e.uid, e.metadata, e.body, e.status, e.node, e.fresh, e.removed, e.actor)
        for e in cluster.draft.take()
    )
    message = fact_pb2.ChangeSet.FromString(facts.encode(FactSet(cluster.now, changes)))
    facts.fold(reader, message, cluster.revision)
    cluster.revision += 1
    return cluster.take_events()


def contents(store: Store) -> dict[Key, Any]:
    return {
        key: (item.uid, item.metadata, item.body, item.status, item.revision, item.spec_revision)
        for key, item in store.objects.items()
    }


@given(st.lists(steps, min_size=1, max_size=3))
@settings(max_examples=200)
def test_a_reader_of_the_change_sets_knows_what_the_cluster_knows(sets: list[Any]) -> None:
    cluster, reader = a_cluster(), Store()
    for taken in sets:
        run(cluster, taken)
        commit(cluster, reader)
        assert contents(reader) == contents(cluster.store)


@given(steps)
def test_the_events_tell_of_every_step(taken: list[Any]) -> None:
    cluster, told = a_cluster(), dict[Key, Object]()
    run(cluster, taken)
    for event in cluster.take_events():
        assert told.get(event.key) is event.old
        if event.new is None:
            del told[event.key]
        else:
            told[event.key] = event.new
    assert told == cluster.store.objects


@given(steps, steps, steps, steps)
@settings(max_examples=200)
def test_what_fails_leaves_nothing_behind(before: Any, earlier: Any, failing: Any, later: Any) -> None:
    """As if it had never been tried: in the store, in the events and in the change set, whatever comes before and after."""
    tried, spared = a_cluster(), a_cluster()
    readers = Store(), Store()
    for cluster, reader in zip((tried, spared), readers, strict=True):
        run(cluster, before)
        commit(cluster, reader)
        run(cluster, earlier)
    with contextlib.suppress(ZeroDivisionError), tried.whole():
        run(tried, failing)
        raise ZeroDivisionError
    assert contents(tried.store) == contents(spared.store)
    for cluster, reader in zip((tried, spared), readers, strict=True):
        cluster.new_uid = numbered(1_000)
        run(cluster, later)
        commit(cluster, reader)
        assert contents(reader) == contents(cluster.store)
    assert contents(readers[0]) == contents(readers[1])


@given(steps)
def test_whoever_is_deleted_or_gone_leaves_no_child_behind(taken: list[Any]) -> None:
    """An object whose owners are all gone is gone or going."""
    cluster = a_cluster()
    run(cluster, taken)
    uids = {item.uid for item in cluster.store.objects.values()}
    for item in cluster.store.objects.values():
        owners = {owner["uid"] for owner in item.metadata.get("ownerReferences", ())}
        assert not owners or owners & uids or item.deleting
