"""Reading parts of a scenario file: every key is known, every value has its type, and the error says where."""

from collections.abc import Callable, Collection
from typing import Any, ParamSpec, TypeVar

from kube import Manifest, parse_duration
from testing.scenarios.errors import ScenarioError

P = ParamSpec("P")
T = TypeVar("T")


def mapping(value: Any, known: Collection[str] | None = None) -> Manifest:
    """``value`` as a mapping that has no key but ``known`` ones; nothing at all is an empty mapping."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ScenarioError(f"{value!r} is no mapping")
    unknown = sorted(str(name) for name in value if known is not None and name not in known)
    if unknown:
        raise ScenarioError(f"unknown key {unknown[0]!r}; one of {', '.join(sorted(known or ()))}")
    return value


def sequence(value: Any) -> list[Any]:
    """``value`` as a list; nothing at all is an empty one."""
    if value is not None and not isinstance(value, list):
        raise ScenarioError(f"{value!r} is no list")
    return value or []


def needed(entry: Manifest, name: str) -> Any:
    """What stands at ``name``, which must not be left out."""
    if entry.get(name) is None:
        raise ScenarioError(f"{name} is missing")
    return entry[name]


def at(place: str, read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What ``read`` makes of its arguments; its errors name ``place``."""
    try:
        return read(*args, **kwargs)
    except ScenarioError as error:
        raise error.within(place) from None


def each(place: str, value: Any, read: Callable[[Any], T]) -> tuple[T, ...]:
    """Every element of the list ``value``, read; errors name ``place`` and the element's number."""
    elements = at(place, sequence, value)
    return tuple(at(f"{place}[{number}]", read, element) for number, element in enumerate(elements))


def every(place: str, value: Any, read: Callable[[str, Any], T]) -> tuple[T, ...]:
    """Every entry of the mapping ``value``, read; errors name ``place`` and the entry's key."""
    entries = at(place, mapping, value)
    return tuple(at(f"{place}.{name}", read, name, entry) for name, entry in entries.items())


def flag(value: Any) -> bool:
    """``true`` or ``false``."""
    if not isinstance(value, bool):
        raise ScenarioError(f"{value!r} is neither true nor false")
    return value


def word(value: Any) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value:
        raise ScenarioError(f"{value!r} is no text")
    return value


def whole(value: Any) -> int:
    """A whole number, not below zero."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ScenarioError(f"{value!r} is no whole number")
    return value


def duration(value: Any) -> int:
    """A duration such as ``90s`` as milliseconds."""
    try:
        return parse_duration(str(value))
    except ValueError as error:
        raise ScenarioError(str(error)) from None
