"""kubectl's JSONPath templates, columns of one's own, and JSON patches."""

from typing import Any

import pytest

from kube.json_patch import BadPatch, patched
from tidegate_cli.json_path import BadTemplate, filled, find
from tidegate_cli.tables import own_columns, render

PODS: dict[str, Any] = {
    "items": [
        {
            "metadata": {"name": "a", "labels": {"app.kubernetes.io/name": "web"}},
            "status": {"ready": True, "conditions": [{"type": "Ready", "status": "True"}, {"type": "X", "n": 3}]},
        },
        {"metadata": {"name": "b"}, "status": {"ready": False}},
    ]
}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{.items[*].metadata.name}", "a b"),
        ("{.items[0].metadata.name}", "a"),
        ("{.items[-1].metadata.name}", "b"),
        ("{.items[0:1].metadata.name}", "a"),
        ("{.items[1,0].metadata.name}", "b a"),
        ("{.items[9].metadata.name}", ""),
        ("{.nothing.there}", ""),
        ("{items[0].status.ready}", "true"),
        ("{$.items[0].metadata.labels}", '{"app.kubernetes.io/name":"web"}'),
        (r"{.items[0].metadata.labels.app\.kubernetes\.io/name}", "web"),
        ("{.items[0].metadata.labels['app.kubernetes.io/name']}", "web"),
        ('{.items[0].status.conditions[?(@.type=="Ready")].status}', "True"),
        ("{.items[0].status.conditions[?(@.n>2)].type}", "X"),
        ("{.items[0].status.conditions[?(@.n>2.5)].type}{.items[?(@.status.ready==false)].metadata.name}", "Xb"),
        ("{.items[?(@.status.conditions)].metadata.name}", "a"),
        ("{..name}", "a b"),
        ("{.items[*].status.conditions[*].type}", "Ready X"),
        ('{range .items[*]}{.metadata.name}{"\\t"}{.status.ready}{"\\n"}{end}', "a\ttrue\nb\tfalse\n"),
        ("{range .items[*]}<{range .status.conditions[*]}{.type},{end}>{end}", "<Ready,X,><>"),
        ("names: {.items[*].metadata.name}!", "names: a b!"),
        ('{"{"}{.items[0].metadata.name}', "{a"),
    ],
)
def test_a_template_is_filled_as_kubectl_does(template: str, text: str) -> None:
    assert filled(template, PODS) == text


@pytest.mark.parametrize("path", [".a[", ".a[?(x)]", ".a[?(@.b==c)]", "a..", ".a[?(@.b=='c)]"])
def test_a_path_that_cannot_be_read_is_told(path: str) -> None:
    with pytest.raises(BadTemplate):
        find(path, {"a": [{"b": 1}]})


def test_columns_of_ones_own_show_what_is_there() -> None:
    assert own_columns("A:.x,B:.y[0,1],C:{.z}") == [("A", ".x"), ("B", ".y[0,1]"), ("C", ".z")]
    text = render(PODS["items"], 0, output="custom-columns=NAME:.metadata.name,TYPES:.status.conditions[*].type")
    assert text.splitlines() == ["NAME   TYPES", "a      Ready,X", "b      <none>"]


def test_json_path_reads_one_object_or_the_list_of_all() -> None:
    one, several = PODS["items"][:1], PODS["items"]
    assert render(one, 0, output="jsonpath={.metadata.name}", single=True) == "a"
    assert render(several, 0, output="jsonpath={.items[*].metadata.name}") == "a b"


@pytest.mark.parametrize(
    ("operation", "after"),
    [
        ({"op": "add", "path": "/b", "value": 1}, {"a": [1, 2], "m": {"x/y": 1}, "b": 1}),
        ({"op": "add", "path": "/a/1", "value": 9}, {"a": [1, 9, 2], "m": {"x/y": 1}}),
        ({"op": "add", "path": "/a/-", "value": 9}, {"a": [1, 2, 9], "m": {"x/y": 1}}),
        ({"op": "replace", "path": "/m/x~1y", "value": 2}, {"a": [1, 2], "m": {"x/y": 2}}),
        ({"op": "remove", "path": "/a/0"}, {"a": [2], "m": {"x/y": 1}}),
        ({"op": "move", "from": "/m", "path": "/n"}, {"a": [1, 2], "n": {"x/y": 1}}),
        ({"op": "copy", "from": "/a", "path": "/m/c"}, {"a": [1, 2], "m": {"x/y": 1, "c": [1, 2]}}),
        ({"op": "test", "path": "/a/1", "value": 2}, {"a": [1, 2], "m": {"x/y": 1}}),
    ],
)
def test_an_operation_of_a_json_patch_changes_what_it_names(operation: dict[str, Any], after: dict[str, Any]) -> None:
    before = {"a": [1, 2], "m": {"x/y": 1}}
    assert patched(before, [operation]) == after
    assert before == {"a": [1, 2], "m": {"x/y": 1}}


@pytest.mark.parametrize(
    ("operation", "said"),
    [
        ({"op": "replace", "path": "/b", "value": 1}, "there is no b"),
        ({"op": "remove", "path": "/a/7"}, "there is no 7"),
        ({"op": "test", "path": "/a/0", "value": 2}, "there is 1"),
        ({"op": "add", "path": "b", "value": 1}, "does not begin with /"),
        ({"op": "add", "path": "/a/x", "value": 1}, "invalid literal"),
        ({"op": "turn", "path": "/a"}, "add, remove, replace, move, copy and test"),
        ({"path": "/a"}, "there is no op"),
        ("x", "cannot be read"),
        ({"op": "remove", "path": ""}, "leaves no object"),
        ({"op": "add", "path": "/a/0/b", "value": 1}, "no mapping"),
    ],
)
def test_an_operation_that_does_not_fit_is_told(operation: Any, said: str) -> None:
    with pytest.raises(BadPatch, match=said):
        patched({"a": [1, 2]}, [operation])
