"""Capacity of a device that several claims may share: how much of it a request takes.

Source: Kubernetes' consumable capacity (``allowMultipleAllocations``, ``requestPolicy``). Amounts are in thousandths.
"""

from typing import NamedTuple

from gang_scheduler.domain.dra.cel_values import quantity
from kube import Manifest

Asked = tuple[tuple[str, int], ...]
"""How much of which capacity a request names."""


class Capacity(NamedTuple):
    """``name`` is as the driver wrote it. A request takes one of ``values``, or ``least`` and whole ``step``s above it."""

    name: str
    amount: int
    default: int | None = None
    """What a request takes that does not name it; None for all of it."""

    values: tuple[int, ...] = ()
    least: int = 0
    most: int | None = None
    step: int = 0

    def taken_by(self, asked: int | None) -> int | None:
        """What a request takes of it; None where it asks for more than one may have. ``asked`` None: it does not name it."""
        if asked is None:
            return self.amount if self.default is None else self.default
        if self.values:
            return min((value for value in self.values if value >= asked), default=None)
        taken = max(asked, self.least)
        if self.step:
            taken = self.least - (self.least - taken) // self.step * self.step
        return taken if self.most is None or taken <= self.most else None


def capacity_of(name: str, entry: Manifest) -> Capacity:
    """One capacity of a device; raises CelError for an amount that is none."""
    policy = entry.get("requestPolicy") or {}
    bounds = policy.get("validRange") or {}
    return Capacity(
        name,
        quantity(entry["value"]).milli,
        _amount(policy.get("default")),
        tuple(sorted(quantity(value).milli for value in policy.get("validValues") or ())),
        _amount(bounds.get("min")) or 0,
        _amount(bounds.get("max")),
        _amount(bounds.get("step")) or 0,
    )


def told(amount: int) -> str:
    """An amount as a quantity of a manifest."""
    return f"{amount}m" if amount % 1000 else str(amount // 1000)


def _amount(value: object) -> int | None:
    return None if value is None else quantity(value).milli
