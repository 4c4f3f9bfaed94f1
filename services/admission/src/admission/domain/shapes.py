"""The shape of manifests: which fields there are and of which type.

A shape is read once per request, before any default is filled in. So every other rule of admission may rely on types,
and an unknown field is reported, with its path, without keeping the manifest out.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from admission.domain.errors import FieldError


class Scalar(Enum):
    """A single value; the text is how it is called in a message."""

    TEXT = "a text"
    WHOLE = "a whole number"
    TRUTH = "true or false"
    AMOUNT = "a quantity such as 500m, 2 or 1.5Gi"
    EITHER = "a whole number or a text"
    NUMBER = "a number"
    ANYTHING = "anything"


@dataclass(frozen=True, slots=True)
class Fields:
    """A mapping with the ``known`` fields; fields besides them are reported if it is ``closed``."""

    known: Mapping[str, "Shape"]
    closed: bool = False


@dataclass(frozen=True, slots=True)
class ListOf:
    item: "Shape"


@dataclass(frozen=True, slots=True)
class MapOf:
    """A mapping with keys of the user's choice; those that are not the user's to choose (``without``) are left out."""

    item: "Shape"
    without: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Idle:
    """A field that is taken and that nobody acts on: whoever gives it is told so."""

    shape: "Shape"


Shape = Scalar | Fields | ListOf | MapOf | Idle

TEXT, WHOLE, TRUTH, AMOUNT = Scalar.TEXT, Scalar.WHOLE, Scalar.TRUTH, Scalar.AMOUNT
EITHER, NUMBER, ANYTHING = Scalar.EITHER, Scalar.NUMBER, Scalar.ANYTHING
TEXTS, TEXT_MAP, AMOUNTS = ListOf(TEXT), MapOf(TEXT), MapOf(AMOUNT)
MAPPING = Fields({})


def fields(**known: Shape) -> Fields:
    """A mapping in which other fields may stand unreported."""
    return Fields(known)


def closed(*texts: str, **known: Shape) -> Fields:
    """A mapping with no fields but ``known`` and those named in ``texts``, which may hold anything."""
    return Fields({**dict.fromkeys(texts, ANYTHING), **known}, closed=True)


_TYPES: dict[Scalar, tuple[type, ...]] = {
    TEXT: (str,),
    WHOLE: (int,),
    TRUTH: (bool,),
    AMOUNT: (int, float, str),
    EITHER: (int, str),
    NUMBER: (int, float),
}


class Reading:
    """A walk over one manifest: gives a deep copy without nulls, and collects what is wrong, unknown, or without effect."""

    def __init__(self) -> None:
        self.errors: list[FieldError] = []
        self.unknown: list[str] = []
        self.idle: list[str] = []

    def read(self, path: str, shape: Shape, value: Any) -> Any:
        """A private copy of ``value``; where it has not the ``shape``, an error is noted."""
        if isinstance(shape, Scalar):
            return self._scalar(path, shape, value)
        if isinstance(shape, Idle):
            if value not in ({}, [], ""):
                self.idle.append(path)
            return self.read(path, shape.shape, value)
        if isinstance(shape, ListOf):
            return self._list(path, shape, value)
        if not isinstance(value, dict):
            self.errors.append(FieldError(path, value, "must be a mapping of fields"))
            return {}
        return self._map(path, shape, value) if isinstance(shape, MapOf) else self._fields(path, shape, value)

    def _scalar(self, path: str, shape: Scalar, value: Any) -> Any:
        if shape is ANYTHING:
            return copied(value)
        types = _TYPES[shape]
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            plain = str(value).lower() if isinstance(value, bool) else value
            hint = f'; write it in quotes: "{plain}"' if shape is TEXT and not isinstance(value, dict | list) else ""
            self.errors.append(FieldError(path, value, f"must be {shape.value}{hint}"))
        return value

    def _list(self, path: str, shape: ListOf, value: Any) -> Any:
        if not isinstance(value, list):
            self.errors.append(FieldError(path, value, "must be a list"))
            return []
        return [self.read(f"{path}[{index}]", shape.item, item) for index, item in enumerate(value)]

    def _map(self, path: str, shape: MapOf, value: Mapping[str, Any]) -> Any:
        result = {}
        for name, item in value.items():
            if name in shape.without:
                continue
            if item is not None:
                result[str(name)] = self.read(entry(path, name), shape.item, item)
            elif not isinstance(shape.item, Scalar):
                # `svc:` with nothing behind it still names an entry, an empty one.
                result[str(name)] = [] if isinstance(shape.item, ListOf) else {}
        return result

    def _fields(self, path: str, shape: Fields, value: Mapping[str, Any]) -> Any:
        result = {}
        for name, item in value.items():
            if shape.closed and name not in shape.known:
                self.unknown.append(entry(path, name))
            if item is not None:
                result[str(name)] = self.read(entry(path, name), shape.known.get(name, ANYTHING), item)
        return result


def copied(value: Any) -> Any:
    """A deep copy of JSON-like ``value``."""
    if isinstance(value, dict):
        return {name: copied(item) for name, item in value.items()}
    if isinstance(value, list):
        return [copied(item) for item in value]
    return value


def entry(path: str, name: object) -> str:
    """The path of the field ``name`` of the mapping at ``path``."""
    text = str(name)
    if all(letter.isalnum() or letter in "_-" for letter in text):
        return f"{path}.{text}" if path else text
    return f'{path}["{text}"]'


def one_of(path: str, value: Any, allowed: Iterable[str]) -> Iterable[FieldError]:
    """An error where ``value`` is given and not among ``allowed``."""
    words = list(allowed)
    if value is not None and value not in words:
        yield FieldError(path, value, f"must be one of {', '.join(words)}")


LARGEST = (1 << 31) - 1
"""The largest count or number of seconds: as wide as in Kubernetes, and sums with the time of day stay dates."""
MOST_PODS = 100_000
"""Pods that one task or workload may ask for: one slip of the finger must not fill a cluster with millions of objects."""


def pod_count(path: str, value: Any, least: int = 0) -> Iterable[FieldError]:
    """An error where ``value`` is given and no number of pods that one task or workload may have."""
    return within(path, value, least, MOST_PODS)


def within(path: str, value: Any, least: int, most: int | None = None) -> Iterable[FieldError]:
    """An error where the whole number ``value`` is given and not from ``least`` to ``most`` (None: to LARGEST)."""
    if value is None or least <= value <= (LARGEST if most is None else most):
        return
    if most is not None:
        yield FieldError(path, value, f"must be from {least} to {most}")
    else:
        yield FieldError(path, value, f"must be at least {least}" if value < least else f"must be at most {LARGEST}")
