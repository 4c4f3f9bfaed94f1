"""Whatever a manifest holds, it is let in or refused by field: nothing else ever comes of it."""

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from admission.domain.admit import admit
from admission.domain.errors import Rejected
from kube import Manifest, Store, from_manifest, key_of

JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(), st.text(max_size=4), st.just("1.5Gi"),
    st.builds(list), st.builds(dict), st.lists(st.one_of(st.none(), st.integers(), st.builds(dict)), max_size=2),
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every part of ``value`` but itself."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, item in items for place in [(*path, key), *places(item, (*path, key))]]


def replaced(manifest: Manifest, place: tuple[Any, ...], junk: Any) -> Manifest:
    result = copy.deepcopy(manifest)
    holder: Any = result
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = junk
    return result


@pytest.fixture(scope="session")
def examples(book: Any) -> list[Manifest]:
    """One manifest of each kind and set of fields that the cases use."""
    found: dict[Any, Manifest] = {}
    for path in book.paths:
        for step in book.steps(path):
            for manifest in book.manifests(step):
                shape = tuple(sorted(".".join(map(str, place)) for place in places(manifest)))
                found.setdefault((manifest["kind"], shape), manifest)
    return list(found.values())


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_manifest_with_any_junk_in_it_is_let_in_or_refused_by_field(
    examples: list[Manifest], data: st.DataObject
) -> None:
    if not examples:
        pytest.skip("the cases are not beside the repository")
    manifest = data.draw(st.sampled_from(examples))
    place = data.draw(st.sampled_from(places(manifest)))
    spoilt = replaced(manifest, place, data.draw(JUNK))
    before, store = copy.deepcopy(spoilt), Store()
    outcome = attempt(spoilt, None, store)
    assert repr(spoilt) == repr(before), "the manifest of the caller stays untouched"
    if outcome is not None:
        assert attempt(outcome, None, store) is not None, "what was let in is let in again"
    sound = attempt(manifest, None, store)
    if sound is not None and manifest["metadata"].get("name") and key_or_none(spoilt) == key_of(manifest):
        attempt(spoilt, from_manifest(sound, uid="u"), store)


def key_or_none(manifest: Manifest) -> Any:
    try:
        return key_of(manifest)
    except (ValueError, AttributeError):
        return None


def attempt(manifest: Manifest, old: Any, store: Store) -> Manifest | None:
    """The admitted manifest, or None where it was refused with at least one field."""
    try:
        return admit(manifest, old, store).manifest
    except Rejected as refused:
        assert refused.errors
        assert all(error.path and error.rule for error in refused.errors)
        return None
