"""Pods that change alike are taken in together: all books come out as if each had changed by itself."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gang_scheduler.domain.audit import audit
from gang_scheduler.domain.cluster import Cluster
from gang_scheduler.domain.core import SERVED
from gang_scheduler.domain.score.scoring import Placement
from kube import Event, Key, Manifest, Object, Store
from kube.bindings import with_node

KOORDINATOR = "gang.scheduling.koordinator.sh/"
METADATA: list[Manifest] = [
    {"annotations": {"scheduling.k8s.io/group-name": "described"}, "creationTimestamp": "2026-01-01T00:00:00Z"},
    {"annotations": {f"{KOORDINATOR}name": "g", f"{KOORDINATOR}min-available": "2"}, "labels": {"app": "a"}},
    {"labels": {"app": "a"}},
    {"annotations": {"scheduling.k8s.io/group-name": "g", "volcano.sh/queue-name": "q"}},
]
AFFINITY = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
    {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "a"}}}]}}  # fmt: skip
CONTAINERS = [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]
BODIES: list[Manifest] = [
    {"spec": {"containers": CONTAINERS}},
    {"spec": {"containers": CONTAINERS, "affinity": AFFINITY}},
    {"spec": {"containers": CONTAINERS, "schedulingGates": [{"name": "x"}], "priority": 5}},
    {"spec": {"containers": CONTAINERS, "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "v"}}]}},
]
STATUSES: list[Manifest] = [{"phase": phase} for phase in ("Pending", "Running", "Succeeded", "Failed")]
KEYS = [Key("Pod", "default", name) for name in "abcdef"]
NODES = ("n0", "n1", "unknown")

changes = st.tuples(
    st.sampled_from(["come", "come", "bind", "bind", "status", "delete", "relabel", "other", "go", "assume"]),
    st.lists(st.sampled_from(KEYS), min_size=1, max_size=6, unique=True),
    st.integers(0, 3),
    st.integers(0, 3),
)


def changed(store: Store, what: str, keys: Sequence[Key], number: int, choice: int) -> list[Event]:
    """One change set: the same happens to all of ``keys`` to which it can happen."""
    events: list[Event | None] = []
    marked: Manifest = {**METADATA[number], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    for place, key in enumerate(keys):
        old = store.get(key)
        new = Object(key, f"u{number}", METADATA[number], BODIES[choice], STATUSES[0])
        match what:
            case "come" if old is None:
                events.append(store.put(new))
            case "other" if old is not None:
                events.append(store.put(new))
            case "go":
                events.append(store.remove(key))
            case "bind" if old is not None and not old.spec.get("nodeName"):
                node = NODES[(place if choice else number) % 3]
                status = STATUSES[choice % 2]
                events.append(store.put(old.changed(body=with_node(old.body, node), status=status)))
            case "status" if old is not None:
                events.append(store.put(old.changed(status=STATUSES[choice])))
            case "delete" if old is not None:
                events.append(store.put(old.changed(metadata=marked)))
            case "relabel" if old is not None:
                events.append(store.put(old.changed(metadata=METADATA[number])))
    return [event for event in events if event is not None]


def a_cluster() -> Cluster:
    cluster = Cluster(SERVED, Placement.BINPACK)
    status = {"allocatable": {"cpu": "8", "pods": "110"}}
    nodes = [Object(Key("Node", "", name), name, {}, {"spec": {}}, status) for name in NODES[:2]]
    group = Object(Key("PodGroup.scheduling.volcano.sh", "default", "described"), "g", {}, {"spec": {"minMember": 2}})
    cluster.fold([Event(None, item) for item in (*nodes, group)])
    return cluster


def assume(cluster: Cluster, keys: Sequence[Key], node: str) -> None:
    """A decision binds those of ``keys`` that wait and are of the gang and the shape of the first of them."""
    waiting = [record for key in keys if (record := cluster.pods.get(key)) is not None and not record.node]
    alike = [record for record in waiting if (record.group, record.shape) == (waiting[0].group, waiting[0].shape)]
    if alike:
        cluster.assume(alike, node)


def books(cluster: Cluster) -> dict[str, Any]:
    return {
        "pods": {
            key: (one.pod, one.group.id, one.standing, one.node, one.assumed, one.slot, one.charged)
            for key, one in cluster.pods.items()
        },
        # Without their numbers: a shape that nobody has for a moment is made anew.
        "shapes": {key: (one.shape.requests, one.shape.terms, one.shape.claims) for key, one in cluster.pods.items()},
        "order": {key: (one.order, one.form[1:], one.given, one.reservation) for key, one in cluster.pods.items()},
        "groups": {
            gang: (set(group.members), set(group.pending), group.counts, group.terms, group.queue)
            for gang, group in cluster.groups.items()
        },
        "nodes": {node: set(records) for node, records in cluster.on_node.items() if records},
        "used": cluster.room.table.used.tolist(),
        "touched": cluster.touched,
        "departing": cluster.departing,
    }


@given(st.lists(changes, max_size=10))
@settings(max_examples=200)
def test_the_books_are_as_if_every_pod_had_changed_by_itself(steps: list[tuple[str, list[Key], int, int]]) -> None:
    store, together, apart = Store(), a_cluster(), a_cluster()
    for what, keys, number, choice in steps:
        if what == "assume":
            for cluster in (together, apart):
                assume(cluster, keys, NODES[number % 2])
        else:
            events = changed(store, what, keys, number, choice)
            together.fold(events)
            for event in events:
                apart.fold([event])
        assert books(together) == books(apart)
        assert audit(together) == audit(apart)
