"""Plans evictions for those who found no room in a pass, and keeps what it planned in mind for the next ones."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gang_scheduler.domain.cluster import Cluster
from gang_scheduler.domain.columns.vectors import Mask
from gang_scheduler.domain.evictions.departure import Future
from gang_scheduler.domain.evictions.eviction import Search
from gang_scheduler.domain.evictions.lot_table import LotTable
from gang_scheduler.domain.evictions.rehearsal import Rehearsal
from gang_scheduler.domain.evictions.rights import Floors, Giver, givers, may_reclaim, shared
from gang_scheduler.domain.evictions.victims import GangEviction, Holding, Lot, holding_of, holdings, lots_of
from gang_scheduler.domain.evictions.wish import Wish, short_resources
from gang_scheduler.domain.line.claims import Basis, Claim, Claims
from gang_scheduler.domain.line.waiting_line import Unit
from gang_scheduler.domain.pods.groups import is_lone_pod
from gang_scheduler.domain.pods.pod_record import PodRecord, Standing
from gang_scheduler.domain.room.trial import Step, Trial
from gang_scheduler.domain.terms.revocable_pods import is_last
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
    _lots: dict[str, list[Lot]] = field(default_factory=dict)
    _tables: dict[tuple[str, ...], LotTable] = field(default_factory=dict)
    _leaving: list[PodRecord] = field(default_factory=list)
    _marked: list[PodRecord] = field(default_factory=list)
    _spent: dict[Key, int] = field(default_factory=dict)
    _future: Future | None = None
    _vain: set[object] = field(default_factory=set)
    _stale: dict[str, dict[Holding, None]] = field(default_factory=dict)
    """By queue those who lost some of what they could give."""

    def plan(self, unit: Unit, wish: Wish) -> Plan | None:
        """The placement and the victims for a wish that cannot come true now; None when nobody may or should go."""
        likeness = self._likeness(wish)
        if likeness in self._vain or not self.conceivable(wish):
            return None
        future = self._enter(unit)
        found = self._find(wish)
        if found is not None:
            lots, rehearsal = found
            steps = rehearsal.steps()
            if steps is not None:
                future.keep(rehearsal.gone, steps)
                return self._promise(unit, wish, steps, lots)
        self._vain.add(likeness)
        return None

    def conceivable(self, wish: Wish) -> bool:
        """Whether anybody might be evicted for the wish at all: what is cheap to see."""
        if not self.rules.any or self._polite(wish):
            return False
        self._look_around()
        entitled = self.rules.reclaim and may_reclaim(self.cluster.room.ledger, wish.queue, wish.ask)
        if entitled and any(queue != wish.queue for queue in self._holdings):
            return True
        return self._may_preempt(wish)

    def present(self) -> None:
        """The books show the present again, for whoever wants to be placed now."""
        if self._future is not None:
            self._future.leave()
            self._future = None

    def forget(self) -> None:
        """The pass is over: nobody is marked any more."""
        self.present()
        for record in self._marked:
            record.evicting = False
        self._marked.clear()

    def _enter(self, unit: Unit) -> Future:
        if self._future is not None and self.reserved:
            self.present()
        if self._future is None:
            self._future = Future(self.cluster.room, self.claims)
            self._future.enter(self._leaving, [claim for claim in self.reserved if claim.unit != unit])
        return self._future

    def _find(self, wish: Wish) -> tuple[list[Lot], Rehearsal] | None:
        """Who has to go, and the books without them."""
        ledger = self.cluster.room.ledger
        short = shared(short_resources(self.cluster, wish), wish.ask)
        found = givers(ledger, wish.queue, wish.ask, short) if self.rules.reclaim else {}
        giving = {queue: giver for queue, giver in found.items() if self._lots_in(queue)}
        own = self._may_preempt(wish)
        if not own and not giving:
            return None
        rehearsal = Rehearsal(self.trial, wish.attempt)
        if rehearsal.succeeds():
            return [], rehearsal
        sources = [(giving, False)] if giving else []
        sources += [({}, True)] if own else []
        sources += [(giving, True)] if own and giving else []
        for queues, own_too in sources:
            search = self._search(wish, queues, own_too, short)
            lots = search.run()
            if lots is not None:
                return lots, search.rehearsal
        return None

    def _may_preempt(self, wish: Wish) -> bool:
        """Whether there is less important work in its queue that might go for it."""
        if not self.rules.preemption or is_last(wish.priority):
            return False
        return any(lot.priority < wish.priority for lot in self._lots_in(wish.queue))

    def _search(self, wish: Wish, giving: Mapping[str, Giver], own: bool, short: Sequence[str]) -> Search:
        table = self._table_of((*giving, *((wish.queue,) if own else ())))
        ranks = {rank: tier for tier, rank in enumerate(sorted({giver.rank for giver in giving.values()}))}
        tiers = np.array(
            [ranks[giving[queue].rank] if queue in giving else len(ranks) for queue in table.queues], np.int64
        )
        ledger = self.cluster.room.ledger
        return Search(
            self.cluster,
            self.trial,
            wish,
            table,
            self._eligible(wish, table),
            tiers[table.queue] if len(table.lots) else tiers,
            lambda: Floors.of(ledger, giving, short),
            self._spent,
        )

    def _eligible(self, wish: Wish, table: LotTable) -> Mask:
        """The lots that are still there, of less important work where it is the own queue, and not of the gang itself."""
        eligible: Mask = ~table.gone
        if wish.queue in table.queues:
            own = table.queue == table.queues.index(wish.queue)
            eligible &= ~own | (table.priority < wish.priority)
            mine = {id(group) for group in wish.groups}
            for number in np.flatnonzero(own).tolist() if any(group.started for group in wish.groups) else ():
                if any(id(group) in mine for group in table.lots[number].holding.groups):
                    eligible[number] = False
        return eligible

    def _table_of(self, queues: tuple[str, ...]) -> LotTable:
        if queues not in self._tables:
            lots = [lot for queue in queues for lot in self._lots_in(queue) if not lot.records[0].evicting]
            self._tables[queues] = LotTable(self.cluster.room.table, lots)
        return self._tables[queues]

    def _lots_in(self, queue: str) -> list[Lot]:
        if queue not in self._lots:
            classes, mode = self.cluster.classes, self.rules.gangs
            held = self._holdings.get(queue, ())
            self._lots[queue] = [lot for holding in held for lot in lots_of(holding, classes, mode)]
        return self._lots[queue]

    @property
    def _holdings(self) -> dict[str, list[Holding]]:
        assert self._held is not None, "looked around first"
        for queue, taken in self._stale.items():
            same = self._held[queue]
            for holding in taken:
                left = holding_of(holding.groups, self.cluster)
                same[same.index(holding) : same.index(holding) + 1] = [left] if left.movable else []
        self._stale.clear()
        return self._held

    def _look_around(self) -> None:
        if self._held is not None:
            return
        self._held = holdings(self.cluster)
        for group in self.cluster.groups.values():
            if group.counts[Standing.LEAVING] or group.counts[Standing.BOUND] or group.counts[Standing.RUNNING]:
                self._note_leaving(group.members.values())

    def _note_leaving(self, records: Iterable[PodRecord]) -> None:
        for record in records:
            if record.slot >= 0 and (record.evicting or record.standing is Standing.LEAVING):
                self._leaving.append(record)
                if record.evicting:
                    self._spend(record)

    def _polite(self, wish: Wish) -> bool:
        for group in wish.groups:
            if group.terms is not None and group.terms.priority_class in self.cluster.polite:
                return True
        return any(record.pod.spec.get("preemptionPolicy") == NEVER for record in wish.records)

    def _likeness(self, wish: Wish) -> object:
        """Wishes that are alike in all that matters: where one failed the next one does, as room only becomes less."""
        counts = Counter(self.cluster.room.classes_of(wish.records))
        which = None if is_lone_pod(wish.groups) else tuple(group.id for group in wish.groups)
        return which, wish.queue, wish.priority, tuple(counts.items()), tuple(id(claim) for claim in self.reserved)

    def _promise(self, unit: Unit, wish: Wish, steps: Sequence[Step], found: list[Lot]) -> Plan:
        names = self.cluster.room.table.names
        places = {r.key: (r.pod.uid, names[step.slot]) for step in steps for r in step.records}
        victims = tuple(record for lot in found for record in lot.records)
        awaited = {record.key: record.pod.uid for record in victims or self._quota_that_comes(wish.queue)}
        devices = tuple(device for step in steps for device in step.devices)
        shares = tuple(share for step in steps for share in step.shares)
        claim = Claim(unit, Basis.PROMISE, places, awaited, devices=devices, shares=shares)
        for record in victims:
            record.evicting = True
            self._marked.append(record)
            self._leaving.append(record)
            self._spend(record)
        self._strike(found)
        self.claims.lift([unit])
        self.claims.add(claim)
        return Plan(claim, victims, any(lot.queue != wish.queue for lot in found), wish.priority)

    def _quota_that_comes(self, queue: str) -> list[PodRecord]:
        """Those who leave already, from wherever, and give back what the queue, or one above it, is limited in."""
        ledger = self.cluster.room.ledger
        chain = {name: (ledger.queues or {}).get(name) for name in ledger.chain(queue)}
        limited = {name for name, told in chain.items() if told is not None and (told.capability or told.maximum)}
        return [record for record in self._leaving if limited.intersection(ledger.chain(record.group.queue))]

    def _strike(self, lots: Sequence[Lot]) -> None:
        """The lots are taken, and what else their gangs could give is another thing now."""
        for lot in lots:
            if lot.holding.spare:
                self._stale.setdefault(lot.queue, {})[lot.holding] = None
                continue
            for table in self._tables.values():
                if id(lot) in table.numbers:
                    table.gone[table.numbers[id(lot)]] = True
        for queue in self._stale:
            self._lots.pop(queue, None)
            for queues in [queues for queues in self._tables if queue in queues]:
                del self._tables[queues]

    def _spend(self, record: PodRecord) -> None:
        for budget in self.cluster.budgets.of(record):
            self._spent[budget.key] = self._spent.get(budget.key, 0) + 1
