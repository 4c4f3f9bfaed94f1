"""The names of what is lent: older ones mean the same."""

from resources import Amounts

_OLDER = {
    f"koordinator.sh/{tier}-{name}": f"kubernetes.io/{tier}-{name}"
    for tier in ("batch", "mid")
    for name in ("cpu", "memory")
}

LENT = frozenset(_OLDER.values())


def is_lent(resource: str) -> bool:
    """Whether there is more or less of ``resource`` as others use less or more."""
    return resource in LENT


def plain(amounts: Amounts) -> Amounts:
    """The amounts under the names of what is not lent; what stands under several counts together."""
    found: Amounts = {}
    for name, amount in current(amounts).items():
        own = name.rpartition("-")[2] if name in LENT else name
        found[own] = found.get(own, 0) + amount
    return found


def current(amounts: Amounts) -> Amounts:
    """The amounts under today's names; what stands under both counts together."""
    if _OLDER.keys().isdisjoint(amounts):
        return amounts
    found: Amounts = {}
    for name, amount in amounts.items():
        name = _OLDER.get(name, name)
        found[name] = found.get(name, 0) + amount
    return found
