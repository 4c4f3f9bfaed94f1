"""Selectors as objects and as the texts that kubectl takes."""

import pytest

from kube.selectors import SelectorError, matches, parse_fields, parse_labels

LABELS = {"app": "web", "tier": "a", "example.com/team": "red", "empty": ""}


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        ("app = web", True),
        ("app=db", False),
        ("app!=db", True),
        ("app!=web", False),
        ("missing!=x", True),
        ("missing=x", False),
        ("empty=", True),
        ("missing=", False),
        ("tier in (a,b)", True),
        ("tier in(a,b)", True),
        ("tier in ( b , a )", True),
        ("tier in (b)", False),
        ("tier notin (b,c)", True),
        ("tier notin (a)", False),
        ("missing notin (a)", True),
        ("app", True),
        ("missing", False),
        ("!missing", True),
        ("! missing", True),
        ("!app", False),
        ("example.com/team=red", True),
        ("app=web,tier in (a,b),!canary", True),
        ("app=web,tier in (b,c),!canary", False),
        ("tier notin (b,c),app", True),
    ],
)
def test_label_selectors_as_text(text: str, selected: bool) -> None:
    assert parse_labels(text)(LABELS) is selected


@pytest.mark.parametrize("text", ["app in a,b", "a=b=c", "=x", "!", "app in", "a b", "(a)", "app>1=2", "in (a,b"])
def test_what_is_no_label_selector_is_refused_with_the_way_out(text: str) -> None:
    with pytest.raises(SelectorError):
        parse_labels(text)


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("", True),
        ("spec.nodeName=n1", True),
        ("spec.nodeName!=n1", False),
        ("status.phase=Running,spec.nodeName=n1", True),
        ("status.phase=", False),
        ("spec.missing=", True),
        ("spec.missing!=x", True),
        ("spec.unschedulable=true", True),
        ("metadata.name=p.q", True),
        ("spec.replicas=3", True),
        ("spec.nodeName.deeper=x", False),
    ],
)
def test_field_selectors(text: str, selected: bool) -> None:
    manifest = {
        "metadata": {"name": "p.q"},
        "spec": {"nodeName": "n1", "unschedulable": True, "replicas": 3},
        "status": {"phase": "Running"},
    }
    assert parse_fields(text)(manifest) is selected


@pytest.mark.parametrize("text", ["status.phase", "status.phase in (a)", "=x"])
def test_what_is_no_field_selector_is_refused(text: str) -> None:
    with pytest.raises(SelectorError):
        parse_fields(text)


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "web", "tier": "b"}}, False),
        ({"matchLabels": None, "matchExpressions": None}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "In", "values": ["a"]}]}, True),
        ({"matchExpressions": [{"key": "missing", "operator": "In", "values": ["a"]}]}, False),
        ({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["a"]}]}, False),
        ({"matchExpressions": [{"key": "missing", "operator": "NotIn", "values": ["a"]}]}, True),
        ({"matchExpressions": [{"key": "empty", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "missing", "operator": "DoesNotExist"}]}, True),
        ({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
    ],
)
def test_selector_objects(selector: dict[str, object] | None, selected: bool) -> None:
    assert matches(selector, LABELS) is selected


def test_an_unknown_operator_is_an_error() -> None:
    with pytest.raises(SelectorError, match="Gt"):
        matches({"matchExpressions": [{"key": "tier", "operator": "Gt", "values": ["1"]}]}, LABELS)
