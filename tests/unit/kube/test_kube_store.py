"""The store's indexes, whatever happened to it."""

from hypothesis import given
from hypothesis import strategies as st

from kube import Key, Manifest, Object, Store

KEYS = [Key(kind, space, name) for kind in ("Pod", "Job.batch") for space in ("a", "b") for name in ("x", "y")]
owners = st.lists(st.sampled_from(["u1", "u2", "u3"]), max_size=3)
operations = st.lists(
    st.tuples(st.sampled_from(["put", "status", "remove"]), st.sampled_from(KEYS), owners), max_size=25
)


def owned(uids: list[str]) -> Manifest:
    return {"ownerReferences": [{"uid": uid} for uid in uids]} if uids else {}


def run(steps: list[tuple[str, Key, list[str]]]) -> Store:
    store = Store()
    for number, (what, key, uids) in enumerate(steps):
        old = store.get(key)
        if what == "remove":
            event = store.remove(key)
            assert (event is None) == (old is None)
            assert event is None or (event.old is old and event.new is None)
        elif what == "status" and old is not None:
            store.put(old.changed(status={"n": number}, revision=number))
        else:
            new = Object(key, f"o{number}", owned(uids))
            event = store.put(new)
            assert (event.old, event.new, event.key, event.object) == (old, new, key, new)
    return store


@given(operations)
def test_the_indexes_equal_those_of_a_store_built_anew(steps: list[tuple[str, Key, list[str]]]) -> None:
    store, fresh = run(steps), Store()
    for item in store.objects.values():
        fresh.put(item)
    for kind in ("Pod", "Job.batch", "Other"):
        assert dict(store.of_kind(kind)) == dict(fresh.of_kind(kind))
        for namespace in ("a", "b"):
            expected = [item for key, item in store.objects.items() if key[:2] == (kind, namespace)]
            assert list(store.in_namespace(kind, namespace)) == expected
    for uid in ("u1", "u2", "u3", "none"):
        expected = [item for item in store.objects.values() if uid in _uids(item)]
        assert store.owned_by(uid) == fresh.owned_by(uid) == sorted(expected, key=lambda item: item.key)


def _uids(item: Object) -> list[str]:
    return [owner["uid"] for owner in item.metadata.get("ownerReferences", ())]


@given(operations)
def test_kinds_are_told_in_the_order_of_arrival(steps: list[tuple[str, Key, list[str]]]) -> None:
    store = run(steps)
    assert list(store.of_kind("Pod")) == [key for key in store.objects if key.kind == "Pod"]
