"""What a set of victims may not do together: break more budgets than it must, take a gang below its minimum, a queue below its due."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from gang_scheduler.domain.books.disruption_budgets import DisruptionBudgets
from gang_scheduler.domain.evictions.rights import Floors
from gang_scheduler.domain.evictions.victims import Holding, Lot
from kube import Key


@dataclass(slots=True)
class Allowances:
    """``chosen`` is a set of lots that may go together. ``may_break`` is how many budgets they may break."""

    budgets: DisruptionBudgets
    spent: dict[Key, int]
    floors: Floors
    may_break: int
    chosen: list[Lot] = field(default_factory=list)
    _members: dict[int, int] = field(default_factory=dict)
    """How many members go of each gang that keeps others; and how many of each role where roles have minima."""

    _roles: dict[tuple[int, str], int] = field(default_factory=dict)
    _whole: set[int] = field(default_factory=set)
    _taken: dict[Key, int] = field(default_factory=dict)
    """How many pods the chosen lots take from each budget."""

    _covering: dict[int, dict[Key, int]] = field(default_factory=dict)
    """How many pods of a lot each budget covers."""

    def admit(self, lot: Lot) -> bool:
        """Choose the lot too, if it may go with those chosen."""
        if not (self._keeps_gang(lot) and self._keeps_floor(lot) and self._keeps_budgets(lot)):
            return False
        self.chosen.append(lot)
        self._move(lot, 1)
        return True

    def dismiss(self, lots: Sequence[Lot]) -> None:
        """The newest of the chosen lots, ``lots``, stay after all."""
        for lot in reversed(lots):
            assert self.chosen.pop() is lot
            self._move(lot, -1)

    def members_of(self, holding: Holding) -> int:
        """How many of the gang's members go by themselves."""
        return self._members.get(id(holding), 0)

    def exhausts(self, holding: Holding) -> bool:
        """Whether the gang can spare no further member by itself."""
        return id(holding) in self._whole or self.members_of(holding) >= holding.spare

    def _move(self, lot: Lot, sign: int) -> None:
        self.floors.take(lot.queue, lot.freed(), sign)
        for key, count in self._covered(lot).items():
            self._taken[key] = self._taken.get(key, 0) + sign * count
        gang = id(lot.holding)
        if lot.minimum:
            self._whole ^= {gang}
            return
        self._members[gang] = self._members.get(gang, 0) + sign
        if lot.holding.spare_of_role:
            role = lot.records[0].role
            self._roles[gang, role] = self._roles.get((gang, role), 0) + sign

    def _keeps_gang(self, lot: Lot) -> bool:
        gang = id(lot.holding)
        if gang in self._whole:
            return False
        gone = self.members_of(lot.holding)
        if lot.minimum:
            return not gone
        if not lot.holding.spare_of_role:
            return gone < lot.holding.spare
        role = lot.records[0].role
        return lot.holding.spares(gone + 1, role, self._roles.get((gang, role), 0) + 1)

    def _keeps_floor(self, lot: Lot) -> bool:
        return self.floors.allow(lot.queue, lot.freed())

    def _keeps_budgets(self, lot: Lot) -> bool:
        covered = self._covered(lot)
        if not covered:
            return True
        taken = {key: self._taken.get(key, 0) + covered.get(key, 0) for key in self._taken.keys() | covered.keys()}
        return self.budgets.broken_by(taken, self.spent) <= self.may_break

    def _covered(self, lot: Lot) -> dict[Key, int]:
        if not self.budgets.by_key:
            return {}
        found = self._covering.get(id(lot))
        if found is None:
            found = self._covering[id(lot)] = {}
            for record in lot.records:
                for budget in self.budgets.of(record):
                    found[budget.key] = found.get(budget.key, 0) + 1
        return found
