"""Amounts of resources in manifests: do they parse, are they in their bounds, and how do two lists compare."""

from collections.abc import Iterable, Mapping
from typing import Any

from admission.domain.errors import FieldError
from admission.domain.names import qualified_name
from admission.domain.shapes import entry
from kube.card_names import VGPU_NUMBER
from kube.cpu_lists import MOST_CPUS
from resources import Amounts, QuantityError, exceeds, format_amounts, parse_amounts, parse_nano

_WHOLE_UNIT = 1_000_000_000
MOST = (1 << 63) - 1
"""The most that a quantity can be in Kubernetes."""
MOST_CARDS = 4_096
_MOST = {"cpu": MOST_CPUS, "nvidia.com/gpu": MOST_CARDS, VGPU_NUMBER: MOST_CARDS * 10}


def check_amounts(path: str, given: Mapping[str, Any] | None) -> Iterable[FieldError]:
    """Every amount of the resource list is a quantity and not negative."""
    for name, value in (given or {}).items():
        yield from qualified_name(path, name)
        yield from check_amount(entry(path, name), value)


def check_amount(path: str, value: Any) -> Iterable[FieldError]:
    """``value`` is a quantity and not negative."""
    try:
        nano = parse_nano(value)
    except QuantityError:
        yield FieldError(path, value, "must be a quantity such as 500m, 2 or 1.5Gi")
        return
    if nano < 0:
        yield FieldError(path, value, "must not be negative; write 0 or more")


def check_sizes(path: str, given: Mapping[str, Any] | None) -> Iterable[FieldError]:
    """No amount of the resource list is larger than a machine can be."""
    for name, value in (given or {}).items():
        most = _MOST.get(name, MOST)
        try:
            if parse_nano(value) > most * _WHOLE_UNIT:
                yield FieldError(entry(path, name), value, f"must be at most {most}; no machine has more")
        except QuantityError:
            continue


def sound_amounts(given: Mapping[str, Any] | None) -> Amounts:
    """The amounts of the list that parse; the others are check_amounts' to report."""
    amounts: Amounts = {}
    for name, value in (given or {}).items():
        try:
            amounts.update(parse_amounts({name: value}))
        except QuantityError:
            continue
    return amounts


def is_whole(*values: Any) -> bool:
    """Whether the quantities have no fraction together; what is no quantity passes for whole."""
    try:
        return sum(map(parse_nano, values)) % _WHOLE_UNIT == 0
    except QuantityError:
        return True


def same_amount(left: Any, right: Any) -> bool:
    """Whether two quantities are equal by value, as ``1000m`` and ``1`` are."""
    try:
        return parse_nano(left) == parse_nano(right)
    except (QuantityError, TypeError, AttributeError):
        return bool(left == right)


def at_most(path: str, need: Amounts, limit: Amounts, holder: str) -> Iterable[FieldError]:
    """An error for each resource of which ``need`` has more than ``limit``, where ``limit`` names it."""
    for name in exceeds(need, limit):
        have, most = (format_amounts({name: amount})[name] for amount in (need[name], limit[name]))
        yield FieldError(entry(path, name), have, f"must be at most {most}, {holder}; lower it or raise that")
