"""Merge patches (RFC 7396), with conditions merged by type."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import Manifest, merge, merge_conditions

# The examples of RFC 7396, appendix A, whose target and patch are objects.
RFC_EXAMPLES: list[tuple[Manifest, Manifest, Manifest]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ({"a": "b"}, {"a": {"c": 1}}, {"a": {"c": 1}}),
]


@pytest.mark.parametrize(("old", "patch", "result"), RFC_EXAMPLES)
def test_the_examples_of_the_rfc(old: Manifest, patch: Manifest, result: Manifest) -> None:
    assert merge(old, patch) == result


leaves = st.none() | st.integers() | st.text(max_size=2) | st.lists(st.integers(), max_size=2)
documents = st.dictionaries(
    st.sampled_from("abcd"),
    st.recursive(leaves, lambda inner: st.dictionaries(st.sampled_from("abcd"), inner, max_size=3), max_leaves=8),
    max_size=3,
)


def rfc(target: Any, patch: Any) -> Any:
    """The pseudo-code of RFC 7396, section 2."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = rfc(result.get(name), value)
    return result


@given(documents, documents)
def test_merging_is_the_rfcs_and_idempotent_and_changes_neither_side(old: Manifest, patch: Manifest) -> None:
    before = copy.deepcopy((old, patch))
    merged = merge(old, patch)
    assert merged == rfc(old, patch)
    assert merge(merged, patch) == merged
    assert (old, patch) == before


def test_conditions_take_the_place_of_the_ones_of_their_type() -> None:
    old = {"conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "True"}], "phase": "Running"}
    patch = {"conditions": [{"type": "C", "status": "True"}, {"type": "A", "status": "False"}]}
    types = [(item["type"], item["status"]) for item in merge(old, patch)["conditions"]]
    assert types == [("A", "False"), ("B", "True"), ("C", "True")]


def test_conditions_of_a_nested_object_merge_too() -> None:
    merged = merge({"a": {"conditions": [{"type": "X", "n": 1}]}}, {"a": {"conditions": [{"type": "Y"}]}})
    assert merged == {"a": {"conditions": [{"type": "X", "n": 1}, {"type": "Y"}]}}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ([{"type": "A"}], [{"status": "Pending"}, {"status": "Running"}]),
        ([{"status": "Pending"}], [{"type": "A"}]),
        ({"flow": {}}, [{"type": "A"}]),
        ("text", [{"type": "A"}]),
        ([{"type": "A"}], ["text", 1]),
        ([{"type": "A"}], "text"),
    ],
)
def test_a_list_that_is_not_of_typed_conditions_is_replaced_as_a_whole(old: Any, new: Any) -> None:
    """Conditions without a type cannot be told apart: merging them would lose all but one."""
    assert merge({"conditions": old}, {"conditions": new}) == {"conditions": new}


def test_conditions_go_with_none() -> None:
    assert merge({"conditions": [{"type": "A"}]}, {"conditions": None}) == {}


@given(st.lists(st.sampled_from("ABCDE"), unique=True), st.lists(st.sampled_from("ABCDE"), unique=True))
def test_each_type_stands_once_and_the_new_one_counts(old: list[str], new: list[str]) -> None:
    merged = merge_conditions([{"type": t, "from": 1} for t in old], [{"type": t, "from": 2} for t in new])
    assert [item["type"] for item in merged] == old + [t for t in new if t not in old]
    assert all((item["from"] == 2) == (item["type"] in new) for item in merged)
