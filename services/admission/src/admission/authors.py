"""Who changes what is a fact: users by their names, and the system's own parts by theirs."""

from tidegate.services import SERVICES

PARTS = frozenset((*SERVICES, "cluster", ""))
_OF_NODES = "node/"


def is_part(author: str) -> bool:
    """Whether a part of the system goes by this name. No user may: a write would pass for a decision."""
    return author in PARTS or author.startswith(_OF_NODES)
