"""Sorting objects by one of their fields."""

import re
from collections.abc import Sequence
from typing import Any

from kube import Manifest
from resources import QuantityError, parse_nano
from tidegate_cli.cells import dig

_PATH = re.compile(r"\{?\.?([\w\-]+(?:\.[\w\-/]+|\[-?\d+\])*)\}?")


class BadPath(ValueError):
    """A text that is no path to a field."""


def field_path(text: str) -> str:
    """``{.metadata.name}`` or ``.metadata.name`` as the path inside an object. Raises BadPath."""
    found = _PATH.fullmatch(text.strip())
    if found is None:
        raise BadPath(
            f"{text!r} is no path to a field; write it as .metadata.creationTimestamp or .status.conditions[0].type"
        )
    return found[1]


def sorted_by(manifests: Sequence[Manifest], path: str) -> list[Manifest]:
    """By the value at ``path``: those without one first, then numbers and quantities by size, then texts."""
    return sorted(manifests, key=lambda manifest: _rank(dig(manifest, path)))


def _rank(value: Any) -> tuple[int, int, str]:
    if value is None:
        return 0, 0, ""
    try:
        return 1, parse_nano(value), ""
    except (QuantityError, TypeError):
        return 2, 0, str(value)
