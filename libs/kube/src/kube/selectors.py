"""Selecting objects: label selectors as objects and as text, and field selectors as text."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from kube.keys import Manifest

Labels = Mapping[str, str]


class SelectorError(ValueError):
    """A text or object that is no selector."""


def matches(selector: Manifest | None, labels: Labels) -> bool:
    """Whether a LabelSelector object selects ``labels``: nothing for None, everything when it is empty."""
    if selector is None:
        return False
    if not (selector.get("matchLabels") or {}).items() <= labels.items():
        return False
    return all(_expression(item, labels) for item in selector.get("matchExpressions") or ())


def _expression(item: Manifest, labels: Labels) -> bool:
    key, operator, values = str(item.get("key")), item.get("operator"), item.get("values") or ()
    match operator:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    raise SelectorError(f"operator {operator!r} of {key}: use In, NotIn, Exists or DoesNotExist")


_SET = re.compile(r"([\w./-]+)\s+(in|notin)\s*\(([^)]*)\)")
_EQUAL = re.compile(r"([\w./-]+)\s*(==|!=|=)\s*([\w./-]*)")
_KEY = re.compile(r"(!?)\s*([\w./-]+)")


def label_selector(text: str) -> Manifest:
    """The LabelSelector object of a text as kubectl takes it: ``app=web,tier in (a,b),!canary``. Raises SelectorError."""
    return {"matchExpressions": [_parsed(part) for part in _split(text)]}


def _parsed(part: str) -> Manifest:
    if found := _SET.fullmatch(part):
        values = sorted({value.strip() for value in found[3].split(",")})
        return {"key": found[1], "operator": "In" if found[2] == "in" else "NotIn", "values": values}
    if found := _EQUAL.fullmatch(part):
        return {"key": found[1], "operator": "NotIn" if found[2] == "!=" else "In", "values": [found[3]]}
    if found := _KEY.fullmatch(part):
        return {"key": found[2], "operator": "DoesNotExist" if found[1] else "Exists"}
    raise SelectorError(f"{part!r} is no label selector; write it as app=web, tier in (a,b), canary or !canary")


def parse_labels(text: str) -> Callable[[Labels], bool]:
    """A test for a label selector as kubectl takes it. Raises SelectorError."""
    selector = label_selector(text)
    return lambda labels: matches(selector, labels)


def parse_fields(text: str) -> Callable[[Manifest], bool]:
    """A test for a field selector: ``spec.nodeName=n1,status.phase!=Running``. Raises SelectorError."""
    tests = [_field_test(part) for part in _split(text)]
    return lambda manifest: all(test(manifest) for test in tests)


def _field_test(part: str) -> Callable[[Manifest], bool]:
    found = _EQUAL.fullmatch(part)
    if not found:
        raise SelectorError(f"{part!r} is no field selector; write it as status.phase=Running or spec.nodeName!=n1")
    path, value, equal = found[1].split("."), found[3], found[2] != "!="
    return lambda manifest: (_field(manifest, path) == value) is equal


def _field(manifest: Manifest, path: list[str]) -> str:
    part: Any = manifest
    for name in path:
        part = part.get(name) if isinstance(part, dict) else None
    return "" if part is None else str(part).lower() if isinstance(part, bool) else str(part)


def _split(text: str) -> list[str]:
    """The parts of a selector: split at commas that are not inside parentheses."""
    return [part.strip() for part in re.split(r",(?![^(]*\))", text) if part.strip()]
