"""Sentences about one and about several: the noun and the verb follow the number."""


def counted(count: int, one: str, several: str = "") -> str:
    """``1 pod``, ``2 pods``; ``several`` where it is more than an s behind ``one``."""
    return f"{count} {one}" if count == 1 else f"{count} {several or f'{one}s'}"


def verb(count: int, one: str = "is", several: str = "are") -> str:
    """The form of a verb for ``count`` things."""
    return one if count == 1 else several
