"""Columns of tables: a title and how its cell is read from an object."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from kube import Manifest
from tidegate_cli.cells import NONE, age, condition, dig, newest_true, pairs, since, text

Read = Callable[[Manifest, int], str]


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its title, and its cell for an object at a time (ms). ``wide`` ones are shown with ``-o wide`` only."""

    title: str
    read: Read
    wide: bool = False


def newest(default: str = "") -> Read:
    """The last condition that holds."""
    return lambda manifest, now: newest_true(manifest) or default


def at(path: str, empty: str = "") -> Read:
    """The value at ``path``."""
    return lambda manifest, now: text(dig(manifest, path), empty)


def number(path: str) -> Read:
    """The number at ``path``; 0 where there is none."""
    return at(path, "0")


def state_of(kind: str) -> Read:
    """The status of the condition of that type."""
    return lambda manifest, now: text(condition(manifest, kind).get("status"))


def ago(path: str, empty: str = NONE) -> Read:
    """How long ago the time at ``path`` was."""
    return lambda manifest, now: since(dig(manifest, path), now) if dig(manifest, path) else empty


def of(read: Callable[[Manifest], str]) -> Read:
    """A cell that does not depend on the time."""
    return lambda manifest, now: read(manifest)


def names(path: str, key: str) -> Read:
    """What the elements of the list at ``path`` have at ``key``, joined."""
    return lambda manifest, now: text([one.get(key, "") for one in dig(manifest, path) or ()])


def ready_of(ready: str, wanted: str) -> Read:
    """Ready ones of those wanted: ``1/3``."""
    return lambda manifest, now: f"{dig(manifest, ready) or 0}/{text(dig(manifest, wanted), '1')}"


def count(path: str) -> Read:
    """How many there are at ``path``."""
    return lambda manifest, now: str(len(dig(manifest, path) or ()))


def selector(path: str) -> Read:
    """The mapping at ``path`` as ``a=b,c=d``."""
    return lambda manifest, now: pairs(dig(manifest, path))


AGE = Column("AGE", age)
wide = partial(Column, wide=True)
"""A column that is shown with ``-o wide`` only."""
