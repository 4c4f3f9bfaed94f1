"""What an update changes, field by field, with quantities compared by value and nothing at all equal to empty."""

from collections.abc import Iterable
from typing import Any

from admission.domain.errors import FieldError
from admission.domain.quantities import same_amount
from admission.domain.shapes import entry


def differences(path: str, old: Any, new: Any) -> Iterable[tuple[str, Any, Any]]:
    """(path, old value, new value) of every field in which ``new`` differs from ``old``, outermost names first."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in [*old, *(name for name in new if name not in old)]:
            yield from differences(entry(path, name), old.get(name), new.get(name))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from differences(f"{path}[{index}]", before, after)
    elif not _same(path, old, new):
        yield path, old, new


def fixed(path: str, old: Any, new: Any, way_out: str) -> Iterable[FieldError]:
    """An error for every difference: what stands at ``path`` may not change; ``way_out`` says what to do instead."""
    for where, before, after in differences(path, old, new):
        yield FieldError(where, after, f"may not change (it is {_shown(before)}); {way_out}")


def _same(path: str, old: Any, new: Any) -> bool:
    if old in (None, {}, [], "") and new in (None, {}, [], ""):
        return True
    if ".requests" in path or ".limits" in path or ".capability" in path:
        return same_amount(old, new)
    return bool(old == new)


def _shown(value: Any) -> str:
    text = "not set" if value is None else repr(value)
    return text if len(text) <= 80 else text[:80] + "…"
