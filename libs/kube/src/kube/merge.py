"""Merging a change into a manifest: JSON merge patch (RFC 7396), with lists of conditions merged by their type."""

from typing import Any

from kube.keys import Manifest


def merge(old: Manifest, patch: Manifest) -> Manifest:
    """``old`` with ``patch`` laid over it; ``None`` removes a key, ``conditions`` are merged by type. Neither is changed."""
    result = dict(old)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif name == "conditions" and _have_types(value) and _have_types(result.get(name) or []):
            result[name] = merge_conditions(result.get(name) or [], value)
        elif isinstance(value, dict):
            before = result.get(name)
            result[name] = merge(before if isinstance(before, dict) else {}, value)
        else:
            result[name] = value
    return result


def merge_conditions(old: list[Any], new: list[Any]) -> list[Any]:
    """The conditions ``old`` with those of ``new`` in the place of the ones of their type, new types at the end."""
    by_type = {condition.get("type"): condition for condition in new}
    kept = [by_type.pop(condition.get("type"), condition) for condition in old]
    return kept + list(by_type.values())


def replacement(old: Manifest, new: Manifest) -> Manifest:
    """The merge patch that makes ``old`` into ``new``."""
    patch: Manifest = {name: None for name in old if name not in new}
    for name, value in new.items():
        before = old.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            if inner := replacement(before, value):
                patch[name] = inner
        elif value != before or name not in old:
            patch[name] = value
    return patch


def _have_types(conditions: Any) -> bool:
    """Whether it is a list of conditions that can be told apart; any other list is replaced as a whole."""
    return isinstance(conditions, list) and all(isinstance(item, dict) and "type" in item for item in conditions)
