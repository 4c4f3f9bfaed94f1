"""Vectors of resource quantities: a mapping from resource name to integer amount.

``cpu`` is in milli-cores, all else in whole units. A resource that is left out counts as zero on the side of a need
and of a supply alike.
"""

from collections.abc import Mapping
from typing import Any

from resources.quantity import QuantityError, format_quantity, parse_milli, parse_quantity

Amounts = dict[str, int]

_BYTES = ("memory", "storage")


def parse_amounts(manifest: Mapping[str, Any] | None) -> Amounts:
    """A Kubernetes resource list as amounts; raises QuantityError naming the resource that is wrong."""
    amounts: Amounts = {}
    for name, value in (manifest or {}).items():
        try:
            amounts[name] = parse_milli(value) if is_milli(name) else parse_quantity(value)
        except QuantityError as error:
            raise QuantityError(f"{name}: {error}") from None
    return amounts


def is_milli(name: str) -> bool:
    """Whether amounts of the resource ``name`` count thousandths: cpu and its quota names."""
    return name in ("cpu", "requests.cpu", "limits.cpu")


def format_amounts(amounts: Mapping[str, int]) -> dict[str, str]:
    """The amounts as a Kubernetes resource list, in canonical quantities."""
    return {name: format_amount(name, amount) for name, amount in amounts.items()}


def format_amount(name: str, amount: int) -> str:
    """One amount of the resource ``name`` as a person would write it: ``500m``, ``2``, ``8Gi``."""
    return format_quantity(amount, milli=is_milli(name), binary=_is_bytes(name))


def _is_bytes(name: str) -> bool:
    """Whether the resource ``name`` counts bytes; memory of virtual cards counts MiB."""
    own = name.rsplit("/", 1)[-1]
    return own.endswith(_BYTES) and not own.endswith("vgpu-memory")


def add(left: Mapping[str, int], right: Mapping[str, int]) -> Amounts:
    """left + right, over the union of their resources."""
    total = dict(left)
    for name, amount in right.items():
        total[name] = total.get(name, 0) + amount
    return total


def subtract(left: Mapping[str, int], right: Mapping[str, int]) -> Amounts:
    """left - right, over the union of their resources; may go below zero."""
    rest = dict(left)
    for name, amount in right.items():
        rest[name] = rest.get(name, 0) - amount
    return rest


def times(amounts: Mapping[str, int], factor: int) -> Amounts:
    """Every amount multiplied by ``factor``."""
    return {name: amount * factor for name, amount in amounts.items()}


def largest(left: Mapping[str, int], right: Mapping[str, int]) -> Amounts:
    """The larger of both, resource by resource."""
    result = dict(left)
    for name, amount in right.items():
        result[name] = max(result.get(name, 0), amount)
    return result


def smallest(left: Mapping[str, int], right: Mapping[str, int]) -> Amounts:
    """The smaller of both for the resources that both name; the other resources stay as they are in either."""
    result = {**right, **left}
    for name in left.keys() & right.keys():
        result[name] = min(left[name], right[name])
    return result


def fits(need: Mapping[str, int], have: Mapping[str, int]) -> bool:
    """Whether every needed amount is there; what ``have`` does not name counts as zero."""
    return all(amount <= have.get(name, 0) for name, amount in need.items() if amount > 0)


def exceeds(need: Mapping[str, int], limit: Mapping[str, int]) -> list[str]:
    """The resources, sorted, of which ``need`` takes more than a limit allows; unlimited where ``limit`` is silent."""
    return sorted(name for name, amount in need.items() if name in limit and amount > limit[name])


def is_zero(amounts: Mapping[str, int]) -> bool:
    """Whether nothing at all is asked for."""
    return not any(amounts.values())
