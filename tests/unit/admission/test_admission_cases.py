"""The acceptance cases, taken through admission alone: no clock, no cluster, only the objects that they apply.

Where the cases are not beside the repository there is nothing to run.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from admission.domain.admit import admit, admit_delete
from admission.domain.errors import Rejected
from kube import Manifest, Store, from_manifest, key_of
from resources import QuantityError, parse_nano

# What these refuse depends on what the cluster did in between.
NEEDS_CLUSTER = ("vt-queue-close",)
# The kinds of these areas are let in by their shape alone so far.
LET_IN_BY_SHAPE = ("serving", "autoscaling", "pipeline", "tuning")
# Paths that admission alone decides.
DECIDED = ("spec", "metadata")


def test_the_cases_are_let_in_or_refused_as_they_say(case: Path, book: Any) -> None:
    """What a case applies is let in; what it says is refused is refused with the text that it names."""
    if case.stem in NEEDS_CLUSTER:
        pytest.skip("depends on what the cluster does")
    store = Store()
    for step in book.steps(case):
        text = step.get("rejects")
        if text and case.parent.name in LET_IN_BY_SHAPE:
            continue
        for manifest in book.manifests(step):
            expect(text, lambda manifest=manifest: apply(store, manifest))
        for item in [found for name in step.get("delete", []) if (found := book.find(store, name))]:
            expect(text, lambda item=item: admit_delete(item, store))
            if not text:
                store.remove(item.key)
        if case.parent.name == "admission":
            for wanted in step.get("expect", {}).get("object", []):
                compare(book.value_at(book.find(store, wanted["ref"]), wanted["path"]), wanted)


def test_admitting_what_was_admitted_changes_nothing(case: Path, book: Any) -> None:
    """Defaults are filled in once: the stored form is let in again as it is, as the new and as the old version."""
    store = Store()
    for step in book.steps(case):
        for manifest in [] if "rejects" in step else book.manifests(step):
            first = apply(store, manifest)
            stored = store.get(key_of(first))
            for again in (first, manifest):
                repeated = admit(again, stored, store).manifest
                repeated.pop("status", None)
                if key_of(first).kind != "Pod":
                    assert repeated == {name: part for name, part in first.items() if name != "status"}


def apply(store: Store, manifest: Manifest) -> Manifest:
    key = key_of(manifest)
    old = store.get(key)
    admitted = admit(manifest, old, store).manifest
    store.put(from_manifest(admitted, uid=old.uid if old else f"uid-{len(store.objects)}"))
    return admitted


def expect(text: str | None, action: Callable[[], object]) -> None:
    """``action`` goes through, or is refused with ``text``."""
    if text is None:
        action()
        return
    with pytest.raises(Rejected) as refused:
        action()
    assert text.lower() in str(refused.value).lower()


def compare(found: Any, wanted: Manifest) -> None:
    if not wanted["path"].startswith(DECIDED) and wanted["path"] != "status.state":
        return
    if "exists" in wanted:
        assert (found is not None) == wanted["exists"], wanted
    if "equals" in wanted:
        allowed = wanted["equals"] if isinstance(wanted["equals"], list) else [wanted["equals"]]
        assert found in allowed or nano(found) in [nano(value) for value in allowed], (wanted, found)


def nano(value: Any) -> Any:
    try:
        return parse_nano(value)
    except (QuantityError, AttributeError):
        return value
