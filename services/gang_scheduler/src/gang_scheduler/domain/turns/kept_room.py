"""Room that is kept: let go of when it has no point any more, and looked at in every pass by those for whom it is kept."""

from dataclasses import dataclass

from gang_scheduler.domain.line.claims import Claims
from gang_scheduler.domain.line.wait_limits import WaitLimits
from gang_scheduler.domain.line.waiting_line import Unit, WaitingLine
from gang_scheduler.domain.turns.backfill import Heads


@dataclass(slots=True)
class KeptRoom:
    """``claims`` is the room; ``reserves`` says whether any is reserved for those who have waited long."""

    claims: Claims
    line: WaitingLine
    heads: Heads
    limits: WaitLimits
    reserves: bool

    def due(self, now: int) -> set[Unit]:
        """For whom room has to be reserved: heads that waited long, and those who may not be passed over any more."""
        if not self.reserves:
            return set()
        heads = [unit for unit in self.heads.due(now) if not self.limits.over(unit, now)]
        return {*heads, *self.limits.pressing(now)}

    def renew(self, due: set[Unit], now: int) -> None:
        """Line up those whose room or time it is; ``due`` are those for whom room has to be reserved."""
        claims, line = self.claims, self.line
        for unit in self.limits.take(now):
            if unit in line:
                line.renew(unit)
        for claim in list(claims.promises.values()):
            if claim.unit not in line or not claims.holds(claim):
                claims.end(claim)
            else:
                line.renew(claim.unit)
        for claim in list(claims.reservations.values()):
            if claim.unit not in due or claim.unit not in line or not claims.holds(claim):
                claims.end(claim)
        for unit in sorted(due):
            if unit in line:
                line.renew(unit)
        claims.renew()
