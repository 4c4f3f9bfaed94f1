"""Plans evictions for those who found no room in a pass, and keeps what it planned in mind for the next ones."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from gang_scheduler.domain.claims import Basis, Claim, Claims
from gang_scheduler.domain.cluster import Cluster
from gang_scheduler.domain.departure import Future
from gang_scheduler.domain.eviction import Search, Wish, short_resources
from gang_scheduler.domain.pod_record import PodRecord, Standing
from gang_scheduler.domain.rights import Floors, Giver, givers, shared
from gang_scheduler.domain.trial import Step, Trial
from gang_scheduler.domain.victims import GangEviction, Holding, Lot, holding_of, holdings, lots_of
from gang_scheduler.domain.waiting_line import Unit
from kube import Key

NEVER = "Never"


@dataclass(frozen=True, slots=True)
class EvictionRules:
    """Which evictions there are at all."""

    preemption: bool = True
    reclaim: bool = True
    gangs: GangEviction = GangEviction.WHOLE

    @property
    def any(self) -> bool:
        return self.preemption or self.reclaim


@dataclass(frozen=True, slots=True)
class Plan:
    """Where a unit will be placed when ``victims`` are gone. ``reclaimed`` says that some are of other queues."""

    claim: Claim
    victims: tuple[PodRecord, ...]
    reclaimed: bool
    priority: int


@dataclass(slots=True)
class Evictor:
    """Lives for one pass. ``reserved`` are the reservations to be honoured by whoever asks now."""

    cluster: Cluster
    trial: Trial
    claims: Claims
    rules: EvictionRules
    reserved: Sequence[Claim] = ()
    _held: dict[str, list[Holding]] | None = None
    _leaving: list[PodRecord] = field(default_factory=list)
    _marked: list[PodRecord] = field(default_factory=list)
    _spent: dict[Key, int] = field(default_factory=dict)

    def plan(self, unit: Unit, wish: Wish) -> Plan | None:
        """The placement and the victims for a wish that cannot come true now; None when nobody may or should go."""
        if not self.rules.any or self._polite(wish):
            return None
        self._look_around()
        if not self._conceivable(wish):
            return None
        future = Future(self.cluster.room, self.claims)
        future.enter(self._leaving, [claim for claim in self.reserved if claim.unit != unit])
        try:
            found = self._find(wish)
            if found is None:
                return None
            for lot in found:
                future.leaving.take(lot.records)
            mark = self.trial.checkpoint()
            if not wish.attempt():
                return None
            steps = self.trial.since(mark)
            self.trial.rollback(mark)
            return self._promise(unit, wish, steps, found)
        finally:
            future.leave()

    def forget(self) -> None:
        """The pass is over: nobody is marked any more."""
        for record in self._marked:
            record.evicting = False
        self._marked.clear()

    def _find(self, wish: Wish) -> list[Lot] | None:
        own = self._own_lots(wish)
        short = shared(short_resources(self.cluster, wish.records), wish.ask)
        ledger = self.cluster.room.ledger
        givers_found = givers(ledger, wish.queue, wish.ask, short) if self.rules.reclaim else {}
        others = self._lots_of_givers(givers_found)
        if not own and not others:
            return None
        mark = self.trial.checkpoint()
        if wish.attempt():
            self.trial.rollback(mark)
            return []
        last = 1 + max((lot.tier for lot in others), default=-1)
        both = [*others, *(self._moved(lot, last) for lot in own)] if own and others else []
        for lots in (others, own, both):
            if lots:
                found = self._search(wish, lots, givers_found, short)
                if found is not None:
                    return found
        return None

    def _search(self, wish: Wish, lots: list[Lot], found: dict[str, Giver], short: Sequence[str]) -> list[Lot] | None:
        ledger = self.cluster.room.ledger
        given = found if any(lot.queue in found for lot in lots) else {}
        search = Search(self.cluster, self.trial, wish, lots, lambda: Floors.of(ledger, given, short), self._spent)
        return search.run()

    def _own_lots(self, wish: Wish) -> list[Lot]:
        if not self.rules.preemption:
            return []
        mine = {id(group) for group in wish.groups}
        return [
            lot
            for holding in self._holdings.get(wish.queue, ())
            if not any(id(group) in mine for group in holding.groups)
            for lot in lots_of(holding, self.cluster.classes, self.rules.gangs, 0)
            if lot.priority < wish.priority
        ]

    def _lots_of_givers(self, found: dict[str, Giver]) -> list[Lot]:
        ranks = {rank: tier for tier, rank in enumerate(sorted({giver.rank for giver in found.values()}))}
        return [
            lot
            for queue in sorted(found)
            for holding in self._holdings.get(queue, ())
            for lot in lots_of(holding, self.cluster.classes, self.rules.gangs, ranks[found[queue].rank])
        ]

    @staticmethod
    def _moved(lot: Lot, tier: int) -> Lot:
        return Lot(lot.records, lot.holding, lot.minimum, lot.priority, lot.created, tier)

    @property
    def _holdings(self) -> dict[str, list[Holding]]:
        assert self._held is not None, "looked around first"
        return self._held

    def _look_around(self) -> None:
        if self._held is not None:
            return
        self._held = holdings(self.cluster)
        for group in self.cluster.groups.values():
            for record in group.members.values():
                if record.slot >= 0 and (record.evicting or record.standing is Standing.LEAVING):
                    self._leaving.append(record)
                    if record.evicting:
                        self._spend(record)

    def _conceivable(self, wish: Wish) -> bool:
        """Whether anybody might be evicted for the wish at all: what is cheap to see."""
        if self.rules.reclaim and any(queue != wish.queue for queue in self._holdings):
            return True
        classes = self.cluster.classes
        return any(
            lot.priority < wish.priority
            for holding in self._holdings.get(wish.queue, ())
            for lot in lots_of(holding, classes, self.rules.gangs, 0)
        )

    def _polite(self, wish: Wish) -> bool:
        for group in wish.groups:
            if group.terms is not None and group.terms.priority_class in self.cluster.polite:
                return True
        return any(record.pod.spec.get("preemptionPolicy") == NEVER for record in wish.records)

    def _promise(self, unit: Unit, wish: Wish, steps: Sequence[Step], found: list[Lot]) -> Plan:
        names = self.cluster.room.table.names
        places = {r.key: (r.pod.uid, names[step.slot]) for step in steps for r in step.records}
        victims = tuple(record for lot in found for record in lot.records)
        claim = Claim(unit, Basis.PROMISE, places, {record.key: record.pod.uid for record in victims})
        for record in victims:
            record.evicting = True
            self._marked.append(record)
            self._leaving.append(record)
            self._spend(record)
        for holding in {id(lot.holding): lot.holding for lot in found}.values():
            same = self._holdings[holding.groups[0].queue]
            left = holding_of(holding.groups)
            same[same.index(holding) : same.index(holding) + 1] = [left] if left.movable else []
        return Plan(claim, victims, any(lot.queue != wish.queue for lot in found), wish.priority)

    def _spend(self, record: PodRecord) -> None:
        for budget in self.cluster.budgets.of(record):
            self._spent[budget.key] = self._spent.get(budget.key, 0) + 1
