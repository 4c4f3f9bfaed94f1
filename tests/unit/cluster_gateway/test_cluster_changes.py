"""Whatever happens in the cluster, the change set that tells of it leads a reader to the same state."""

import contextlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_gateway.domain.cluster import Cluster
from kube import Edit, Event, Key, Manifest, Object, Store, runs
from tidegate.codec import facts
from tidegate.codec.facts import FactSet
from tidegate.fact.v1 import fact_pb2

KEYS = [Key("Pod", "default", "p"), Key("Pod", "team", "p"), Key("ConfigMap", "default", "c"), Key("Node", "", "n")]
KEYS += [Key("ConfigMap", "default", "d"), Key("Namespace", "", "team")]
GANG = [Key("Pod", "default", name) for name in ("g0", "p", "g1", "g2")]
STEPS = ["create", "body", "metadata", "status", "bind", "delete", "gone", "finalizer", "owner"]
steps = st.lists(
    st.tuples(
        st.sampled_from([*STEPS, "create gang", "bind gang", "start gang"]),
        st.sampled_from([*KEYS, *GANG]),
        st.sampled_from(KEYS),
        st.integers(0, 3),
    ),
    max_size=14,
)


def do(cluster: Cluster, what: str, key: Key, other: Key, number: int) -> None:
    if what.endswith("gang"):
        do_with_gang(cluster, what, number)
        return
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
            metadata = {**item.metadata, "annotations": {"n": str(number)}} if number else item.metadata
            cluster.bind([(item, "n", metadata)])
        case "delete":
            cluster.delete(item, number or None)
        case "gone":
            cluster.gone(item)


def do_with_gang(cluster: Cluster, what: str, number: int) -> None:
    members = [cluster.store.get(key) for key in GANG]
    there = [pod for pod in members if pod is not None]
    match what:
        case "create gang" if not there:
            cluster.create_all(GANG, {}, {"spec": {"n": number}}, {"phase": "Pending"})
        case "bind gang":
            unbound = [pod for pod in there if not pod.spec.get("nodeName")]
            if unbound:
                nodes = ("n" if number else f"n{index}" for index in range(len(unbound)))
                cluster.bind([(pod, node, pod.metadata) for pod, node in zip(unbound, nodes, strict=True)])
        case "start gang":
            patch = {"phase": "Running", "started": number}
            waiting = [pod for pod in there if pod.status.get("started") != number]
            cluster.set_statuses(waiting, patch, ["node"] * len(waiting))


def _reference(owner: Object) -> Manifest:
    return {"apiVersion": "v1", "kind": owner.kind, "name": owner.name, "uid": owner.uid, "controller": True}


def numbered(first: int) -> Callable[[], str]:
    count = itertools.count(first)
    return lambda: f"uid-{next(count)}"


def a_cluster() -> Cluster:
    return Cluster(numbered(1), now=1_000_000, revision=1)


def play(cluster: Cluster, taken: list[tuple[str, Key, Key, int]]) -> None:
    for step in taken:
        do(cluster, *step)


def commit(cluster: Cluster, reader: Store) -> list[Event]:
    """The next change set, told to a reader; what happened in the cluster meanwhile."""
    changes = tuple(
        Edit(e.key, e.uid, e.metadata, e.body, e.status, e.node, e.fresh, e.removed, e.actor)
        for e in cluster.draft.take()
    )
    message = fact_pb2.ChangeSet.FromString(facts.encode(FactSet(cluster.now, changes)))
    check_runs(facts.fold(reader, message, cluster.revision))
    cluster.revision += 1
    events = cluster.take_events()
    check_runs(events)
    check_runs(list(events))
    return events


def check_runs(events: Sequence[Event]) -> None:
    """The runs are the events in their order, and what the first of a run tells holds for all of it."""
    found = list(runs(events))
    assert [event for run in found for event in run] == list(events)
    for run in found:
        assert all(told_by(event) == told_by(run[0]) for event in run)


def told_by(event: Event) -> tuple[Any, ...]:
    """All that an event says but for name, uid, revisions and node."""
    old, new = event.old, event.new
    same = old is not None and new is not None and (old.uid == new.uid, old.body == new.body)
    return (*event.key[:2], same, *(item and (item.metadata, *without_node(item), item.status) for item in (old, new)))


def without_node(item: Object) -> tuple[Manifest, bool]:
    spec = {name: part for name, part in item.spec.items() if name != "nodeName"}
    return {**item.body, "spec": spec}, "nodeName" in item.spec


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
        play(cluster, taken)
        commit(cluster, reader)
        assert contents(reader) == contents(cluster.store)


@given(steps)
def test_the_events_tell_of_every_step(taken: list[Any]) -> None:
    cluster, told = a_cluster(), dict[Key, Object]()
    play(cluster, taken)
    events = cluster.take_events()
    check_runs(events)
    for event in events:
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
        play(cluster, before)
        commit(cluster, reader)
        play(cluster, earlier)
    with contextlib.suppress(ZeroDivisionError), tried.whole():
        play(tried, failing)
        raise ZeroDivisionError
    assert contents(tried.store) == contents(spared.store)
    for cluster, reader in zip((tried, spared), readers, strict=True):
        cluster.new_uid = numbered(1_000)
        play(cluster, later)
        commit(cluster, reader)
        assert contents(reader) == contents(cluster.store)
    assert contents(readers[0]) == contents(readers[1])


def test_a_gang_comes_is_bound_and_starts_in_one_run_each() -> None:
    """For the cluster's own readers and for those of its change sets, on whichever nodes its pods are."""
    cluster, reader = a_cluster(), Store()
    for what in ("create gang", "bind gang", "start gang"):
        do_with_gang(cluster, what, 0)
        changes = cluster.draft.take()
        message = fact_pb2.ChangeSet.FromString(facts.encode(FactSet(cluster.now, changes)))
        for events in (cluster.take_events(), facts.fold(reader, message, cluster.revision)):
            pods = [event for event in events if event.key.kind == "Pod"]
            assert [len(run) for run in runs(events) if run[0].key.kind == "Pod"] == [len(GANG)]
            assert [len(run) for run in runs(pods)] == [len(GANG)]
    assert {pod.spec["nodeName"] for pod in reader.of_kind("Pod").values()} == {"n0", "n1", "n2", "n3"}


@given(steps)
def test_whoever_is_deleted_or_gone_leaves_no_child_behind(taken: list[Any]) -> None:
    """An object whose owners are all gone is gone or going."""
    cluster = a_cluster()
    play(cluster, taken)
    uids = {item.uid for item in cluster.store.objects.values()}
    for item in cluster.store.objects.values():
        owners = {owner["uid"] for owner in item.metadata.get("ownerReferences", ())}
        assert not owners or owners & uids or item.deleting
