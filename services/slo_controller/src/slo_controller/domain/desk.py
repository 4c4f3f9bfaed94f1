"""Lending on all nodes: who has to be looked at, the minutes that are counted, and what comes of both."""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from kube import Decision, Key, Object
from kube.alarms import Alarms
from resources import Amounts
from slo_controller.domain.configuration.parts import COLOCATION_KEY
from slo_controller.domain.lending.lender import NEVER, Standing, lent_now, look, stand
from slo_controller.domain.lending.reserved import reserved
from slo_controller.domain.lending.rule import Rule, rule_on
from slo_controller.domain.lending.steadiness import MINUTE_MS
from slo_controller.domain.lending.terms import NOTHING, Use, shown
from slo_controller.domain.memory import Memory
from slo_controller.domain.names import NODE, RECOMMENDATION
from slo_controller.domain.nodes import Nodes
from slo_controller.domain.prediction.kills import Kill
from slo_controller.domain.prediction.workloads import Workload, workload_of


@dataclass(slots=True)
class LendingDesk:
    """``restless`` are the nodes for which the next full minute matters: something of them is not settled, or not learnt yet.

    Whether a node is restless follows from the facts and the memory alone, so that a successor counts the same minutes.
    """

    nodes: Nodes
    memory: Memory
    restless: set[str] = field(default_factory=set)
    learnt: bool = False
    """Whether something was learnt that nobody has taken note of yet."""
    _alarms: Alarms = field(default_factory=Alarms)
    _standings: dict[str, Standing] = field(default_factory=dict)
    """Of the nodes that were looked at in this round."""

    def ring(self, now: int) -> list[str]:
        """The nodes whose time has come."""
        return [key.name for key in self._alarms.take(now)]

    def due(self, now: int) -> int | None:
        """When something has to be done though nothing changes."""
        matters = self.restless or any(self._new_kills(now))
        times = [self._alarms.next, (self.memory.minute + 1) * MINUTE_MS if matters else None]
        return min((time for time in times if time is not None), default=None)

    def sift(self, names: Iterable[str], now: int) -> None:
        """Look how these nodes stand, and for which of them the next minute matters."""
        ends = now // MINUTE_MS > self.memory.minute
        for name in names:
            # What is learnt at the end of a minute changes how they stand: who has news then is looked at once, after it.
            if ends and self._has_news(name, now):
                self.restless.add(name)
            else:
                self._judge(name, self._look_how(name, now), now)

    def _has_news(self, name: str, now: int) -> bool:
        """Whether something is lent of a node, and what was measured there last is not learnt yet."""
        node, seen = self.nodes.get(name), self.nodes.seen(name)
        if node is None or seen is None or not self.memory.past.is_new(name, seen, now):
            return False
        rule = self._rule(node)
        return rule.enabled and abs(now - seen.at) <= rule.degrade_ms

    def _judge(self, name: str, standing: Standing | None, now: int) -> None:
        if self._is_restless(name, standing, now):
            self.restless.add(name)
        else:
            self.restless.discard(name)

    def _is_restless(self, name: str, standing: Standing | None, now: int) -> bool:
        seen = self.nodes.seen(name)
        if standing is None or seen is None:
            return False
        computed, is_new = standing.computed, self.memory.past.is_new(name, seen, now)
        if computed is None:
            return is_new and self._learns_everywhere
        return is_new or not self.memory.lows.is_settled(name, computed.amounts)

    @property
    def _learns_everywhere(self) -> bool:
        """Whether what is used matters on nodes, too, of which nothing is lent."""
        return bool(self.nodes.store.of_kind(RECOMMENDATION))

    def count(self, now: int) -> list[str]:
        """A full minute is over where one is: learn what was seen. The nodes that have to be looked at because of that."""
        minute = now // MINUTE_MS
        kills = list(self._new_kills(now))
        if not (self.restless or kills) or minute <= self.memory.minute:
            return []
        memory, counted = self.memory, sorted(self.restless)
        memory.minute, memory.changed = minute, True
        learnt = self._learn(counted, now) + len(kills)
        for workload, kill in kills:
            memory.past.learn_kill(workload, kill)
        self.learnt |= learnt > 0
        names = self.nodes.names()
        memory.past.forget(now, names)
        for name in memory.lows.by_node.keys() - set(names):
            memory.lows.forget(name)
        # What was learnt on one node is known of the workloads on all others.
        looked_at = sorted({*names, *counted}) if learnt else counted
        self._note(looked_at, frozenset(counted), now)
        return looked_at

    def _learn(self, names: Iterable[str], now: int) -> int:
        """Take in what is new on these nodes, the oldest first; on how many there was something."""
        past, nodes = self.memory.past, self.nodes
        new = ((seen.at, name, seen) for name in names if (seen := nodes.seen(name)) and past.is_new(name, seen, now))
        listed = sorted(new, key=lambda one: one[:2])
        for _, name, seen in listed:
            past.train(name, seen, nodes.workloads(name))
        return len(listed)

    def _note(self, names: Iterable[str], counted: AbstractSet[str], now: int) -> None:
        """A minute is over for those that are ``counted``; how all of these nodes stand after it."""
        for name in names:
            standing = self._look_how(name, now)
            if name in counted and standing is not None and standing.computed is not None:
                self.memory.lows.note(name, standing.computed.amounts)
            self._judge(name, standing, now)

    def _new_kills(self, now: int) -> Iterator[tuple[Workload, Kill]]:
        """Those that nobody has learnt from, where it matters."""
        if not self._learns_everywhere:
            return
        for key, kills in sorted(self.nodes.kills.items()):
            pod = self.nodes.store.get(key)
            workload = workload_of(pod, self.nodes.store) if pod is not None else None
            yield from (
                (workload, kill) for kill in kills if workload and self.memory.past.is_new_kill(workload, kill, now)
            )

    def decide(self, names: Iterable[str], now: int, in_flight: AbstractSet[Key]) -> Iterator[Decision]:
        """What is to be written of these nodes."""
        for name in names:
            key = Key(NODE, "", name)
            standing = self._standings.get(name)
            if standing is None or key in in_flight:
                self._alarms.set(key, None)
                continue
            found = look(standing, self.memory.lows, now)
            self._alarms.set(key, None if found.again_at == NEVER else found.again_at)
            if found.decision is not None:
                yield found.decision
        self._standings.clear()

    def _look_how(self, name: str, now: int) -> Standing | None:
        self._standings.pop(name, None)
        standing = self.standing(name, now)
        if standing is not None:
            self._standings[name] = standing
        return standing

    def standing(self, name: str, now: int) -> Standing | None:
        """How a node stands; None where it is gone."""
        node = self.nodes.get(name)
        if node is None:
            return None
        rule, seen = self._rule(node), self.nodes.seen(name)
        predicted = self._predicted(name) if rule.enabled and seen is not None and seen.reclaimable is None else NOTHING
        return stand(node, rule, seen, self.nodes.tenants(name), predicted, now, self.nodes.topology(name))

    def _rule(self, node: Object) -> Rule:
        return rule_on(node, self.memory.configuration.strategies[COLOCATION_KEY])

    def _predicted(self, name: str) -> Use:
        node = self.nodes.get(name)
        if node is None:
            return NOTHING
        room = reserved(node)
        tenants = ((tenant, workload) for tenant, workload, _ in self.nodes.workloads(name).values())
        return self.memory.past.reclaimable(name, room.capacity.over(room.kept), tenants)

    def notes(self, standing: Standing) -> list[str]:
        """What of the amounts is not written yet, for a person who asks."""
        computed = standing.computed
        if computed is None:
            return []
        present = lent_now(standing.node)
        changed = [name for name, amount in computed.amounts.items() if present.get(name) != amount]
        if not changed:
            return []
        return [f"written so far: {', '.join(f'{name} {_written(name, present)}' for name in changed)}"]


def _written(name: str, present: Amounts) -> str:
    return shown(name, present[name]) if name in present else "nothing"
