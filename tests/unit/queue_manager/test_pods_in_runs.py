"""Pods that change alike are counted together: the books come out as if each had come by itself."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from kube import Event, Key, Manifest, Object, Store, runs
from kube.bindings import with_node
from queue_manager.domain.members.demand import Demand

TEMPLATES: list[Manifest] = [
    {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}} for cpu in ("1", "2")
]
METADATA: list[Manifest] = [{"annotations": {"scheduling.k8s.io/group-name": name}} for name in ("g", "h")]
METADATA += [{}, {"labels": {"kueue.x-k8s.io/queue-name": "q"}}]
STATUSES: list[Manifest] = [{"phase": phase} for phase in ("Pending", "Running", "Succeeded")]
KEYS = [Key("Pod", "default", name) for name in "abcdef"]

changes = st.tuples(
    st.sampled_from(["come", "bind", "status", "other", "go"]),
    st.lists(st.sampled_from(KEYS), min_size=1, max_size=6, unique=True),
    st.integers(0, 3),
)


def changed(store: Store, what: str, keys: Sequence[Key], number: int) -> list[Event]:
    """One change set: the same happens to all of ``keys`` to which it can happen."""
    events: list[Event | None] = []
    for place, key in enumerate(keys):
        old = store.get(key)
        if old is None:
            if what == "come":
                new = Object(key, f"u{number}{place}", METADATA[number], TEMPLATES[number % 2], STATUSES[0])
                events.append(store.put(new))
        elif what == "go":
            events.append(store.remove(key))
        elif what == "bind" and not old.spec.get("nodeName"):
            events.append(store.put(old.changed(body=with_node(old.body, f"n{place % 2}"))))
        elif what == "status":
            events.append(store.put(old.changed(status=STATUSES[number % 3])))
        elif what == "other":
            events.append(store.put(Object(key, f"v{number}", METADATA[number], TEMPLATES[number % 2], STATUSES[0])))
    return [event for event in events if event is not None]


@given(st.lists(changes, max_size=8))
@settings(max_examples=200)
def test_the_books_are_as_if_every_pod_had_changed_by_itself(steps: list[tuple[str, list[Key], int]]) -> None:
    store, together, apart = Store(), Demand(), Demand()
    for what, keys, number in steps:
        events = changed(store, what, keys, number)
        for run in runs(events):
            together.fold_pods(run)
        for event in events:
            apart.fold_pods([event])
        assert together.check() == []
        assert together.tallies == apart.tallies
        assert together.dirty == apart.dirty
