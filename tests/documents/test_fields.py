"""What the document of fields calls honoured is named in the code of those who act on the kind; what it calls idle is told."""

import re
from functools import cache
from typing import Any

import pytest
from document_fields import HANDED_ON, HONOURED, IDLE, described, rows
from document_kinds import BY_KIND
from generate import ROOT

from admission.domain.admit import admit
from admission.domain.rules import RULES
from admission.domain.shapes import Fields, Idle, ListOf, MapOf, Scalar, Shape
from kube import KINDS, Store

SHARED = ("kube", "resources", "chassis")
STANDING = {Scalar.TEXT: "x", Scalar.ANYTHING: "x", Scalar.TRUTH: True, Scalar.EITHER: 1, Scalar.AMOUNT: "1"}


@cache
def text_of(folder: str) -> str:
    return "\n".join(file.read_text() for file in sorted((ROOT / folder).glob("**/*.py")) if file.name != "rules.py")


def names(kind: str, word: str) -> bool:
    """Whether the code of those who act on ``kind`` names the field."""
    support = BY_KIND.get(kind)
    folders = [f"services/{actor}/src" for actor in (support.actors if support else ())]
    found = re.compile(rf"\b{re.escape(word)}\b")
    return any(found.search(text_of(folder)) for folder in (*folders, *(f"libs/{name}/src" for name in SHARED)))


@pytest.mark.parametrize("kind", described())
def test_what_is_said_to_be_honoured_is_named_by_those_who_act_on_it(kind: str) -> None:
    honoured = [row for row in rows(kind) if row.effect == HONOURED]

    unread = {row.path for row in honoured for word in re.findall(r"\w+", row.path) if not names(kind, word)}

    assert unread == set()


@pytest.mark.parametrize("kind", [kind for kind in described() if any(row.effect == IDLE for row in rows(kind))])
def test_what_has_no_effect_is_told(kind: str) -> None:
    """Whoever gives all of these fields is warned of each, whatever else is wrong with the manifest."""
    from admission.domain.shapes import Reading

    reading = Reading()
    shape = RULES[kind].shape

    reading.read("", shape, given(shape))

    told = {re.sub(r"\[0\]", "[]", path).replace(".any", ".*") for path in reading.idle}
    assert {row.path for row in rows(kind) if row.effect == IDLE} <= told


def given(shape: Shape) -> Any:
    """A value of ``shape`` with everything in it."""
    match shape:
        case Idle(inner):
            return given(inner)
        case Fields(known):
            return {name: given(part) for name, part in known.items()} or {"x": 1}
        case ListOf(item):
            return [given(item)]
        case MapOf(item):
            return {"any": given(item)}
        case Scalar():
            return STANDING.get(shape, 1)


def test_a_warning_says_which_field_has_no_effect() -> None:
    queue = {
        "apiVersion": KINDS["Queue.scheduling.volcano.sh"].api_version,
        "kind": "Queue",
        "metadata": {"name": "q"},
        "spec": {"extendClusters": [{"name": "far"}], "affinity": {}},
    }

    assert admit(queue, None, Store()).warnings == ("spec.extendClusters: it is kept, and nobody acts on it",)


def test_fields_that_are_handed_on_are_fields() -> None:
    for kind, path in HANDED_ON:
        assert any(row.path.startswith(path) for row in rows(kind)), (kind, path)
