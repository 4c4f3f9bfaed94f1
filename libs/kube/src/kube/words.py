"""Sentences about one and about several: the noun and the verb follow the number."""

from collections.abc import Sequence


def counted(count: int, one: str, several: str = "") -> str:
    """``1 pod``, ``2 pods``; ``several`` where it is more than an s behind ``one``."""
    return f"{count} {one}" if count == 1 else f"{count} {several or f'{one}s'}"


def verb(count: int, one: str = "is", several: str = "are") -> str:
    """The form of a verb for ``count`` things."""
    return one if count == 1 else several


NAMED = 5
"""So many are named in a sentence."""


def some(names: Sequence[str]) -> str:
    """``a, b, c, d, e and 3 more``: the first of them, and how many there are besides."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
