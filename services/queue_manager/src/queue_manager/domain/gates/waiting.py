"""The groups that wait at the gate: who has to be judged again, who was let in, and what each was told."""

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from functools import lru_cache

from kube import Decision, Event, Key, Manifest, Mutation, Verb, rfc3339
from queue_manager.domain.gates.gate import Gate, Hold, Room, gate_order, open_room, title
from queue_manager.domain.gates.gate_answer import gate_answer, quota_lines, unknown
from queue_manager.domain.members.demand import Demand
from queue_manager.domain.members.groups import ADMITTED, INQUEUE, PENDING, Group
from queue_manager.domain.members.members import COHORTS, domain_of
from queue_manager.domain.members.quota import Quota, read_quota
from queue_manager.domain.quotas.queue_tree import QueueTree
from resources import Amounts

ADMISSION = "GroupAdmitted"
_RETELL_MS = 10_000
_stamp = lru_cache(maxsize=4)(rfc3339)


class WaitingGroups:
    """Judges waiting groups, each only when something that it depends on has changed."""

    def __init__(
        self, tree_of: Callable[[str], QueueTree], demand: Demand, factor_milli: int, by_age: bool = False
    ) -> None:
        self._demand = demand
        self._factor_milli = factor_milli
        self._gate = Gate(tree_of, demand, self._quotas_of, self.is_let_in)
        self._quotas: dict[str, dict[Key, Quota]] = {}
        self._priorities: dict[str, int] = {}
        self._order = gate_order(tree_of, {} if by_age else self._priorities)
        self._waiting: dict[Key, None] = {}
        self._recheck: dict[Key, None] = {}
        self._assumed: dict[Key, None] = {}
        self._told_at: dict[Key, int] = {}

    def fold_group(self, event: Event) -> None:
        """Take in a change of a pod group."""
        self._demand.fold_group(event)
        group = self._demand.groups.get(event.key)
        if group is not None and group.waits_at_gate and domain_of(group.queue) != COHORTS:
            self._waiting[event.key] = self._recheck[event.key] = None
            return
        for keys in (self._waiting, self._recheck, self._told_at):
            keys.pop(event.key, None)

    def fold_priority(self, event: Event) -> None:
        """Take in what a priority class is worth."""
        value = event.new.body.get("value") if event.new else None
        self._priorities[event.key.name] = value if isinstance(value, int) else 0

    def fold_quota(self, event: Event) -> None:
        """Take in a change of a ResourceQuota."""
        quotas = self._quotas.setdefault(event.key.namespace, {})
        quotas.pop(event.key, None)
        if event.new is not None:
            quotas[event.key] = read_quota(event.new)
        self._look_again_in({event.key.namespace})

    def look_again(self) -> None:
        """Queues have changed: judge everybody anew."""
        self._recheck.update(self._waiting)

    def supply_changed(self) -> None:
        """The cluster has grown or shrunk, or is used more or less: that concerns the overcommit gate."""
        if self._factor_milli:
            self.look_again()

    def demand_changed(self, tallies: Iterable[Key]) -> None:
        """Pods of these groups, or bare pods, came, went or were bound."""
        spaces = set()
        for key in tallies:
            if key in self._waiting and key not in self._assumed:
                self._recheck[key] = None
            if self._quotas.get(key.namespace):
                spaces.add(key.namespace)
        self._look_again_in(spaces)
        self.supply_changed()

    def assume(self, key: Key) -> None:
        """Count the group as let in until the outcome comes."""
        self._assumed[key] = None
        self._demand.dirty[key] = None

    def settle(self, key: Key, name: str) -> None:
        """The outcome of a decision about ``key`` is there."""
        if name == ADMISSION:
            self._assumed.pop(key, None)
            self._demand.dirty[key] = None
        if key in self._waiting:
            self._recheck[key] = None

    def is_let_in(self, group: Group) -> bool:
        """Whether the group may compete for room."""
        return not group.waits_at_gate or group.key in self._assumed

    def decide(self, supply: Amounts, now: int, in_flight: AbstractSet[Key]) -> list[Decision]:
        """Who is let in, and who is told why not."""
        if not self._recheck:
            return []
        due, self._recheck = self._recheck, {}
        groups = [self._demand.groups[key] for key in due if key in self._waiting and key not in self._assumed]
        room = self._room(supply)
        decisions = []
        for group in sorted(groups, key=self._order):
            if group.key in in_flight:
                continue
            hold = self._gate.judge(group, room)
            decision = self._admit(group, now) if hold is None else self._hold(group, hold, now)
            decisions += [decision] if decision else []
        return decisions

    def _room(self, supply: Amounts) -> Room:
        groups = self._demand.groups.values() if self._factor_milli else ()
        inside = (group for group in groups if group.phase in ("", PENDING, INQUEUE) and self.is_let_in(group))
        return open_room(supply, self._factor_milli, self._demand, inside)

    def _admit(self, group: Group, now: int) -> Decision:
        self.assume(group.key)
        message = f"{title(group.queue)} lets the group in"
        status: Manifest = {"phase": INQUEUE}
        if group.told is not None:
            status["conditions"] = [condition(ADMITTED, "True", "LetIn", message, now)]
        mutation = Mutation(Verb.STATUS, group.key, group.uid, patch=status)
        return Decision(ADMISSION, group.key, group.uid, "LetIn", message, (mutation,))

    def _hold(self, group: Group, hold: Hold, now: int) -> Decision | None:
        """Tell the group why it waits, unless it knows; numbers that merely moved are told again after ten seconds."""
        if group.phase == PENDING and group.told is not None:
            same, recent = group.told == (hold.reason, hold.message), now < self._told_at.get(group.key, 0) + _RETELL_MS
            if same or (group.told[0] == hold.reason and recent):
                return None
        self._told_at[group.key] = now
        status = {"phase": PENDING, "conditions": [condition(ADMITTED, "False", hold.reason, hold.message, now)]}
        mutation = Mutation(Verb.STATUS, group.key, group.uid, patch=status)
        return Decision("GroupHeld", group.key, group.uid, hold.reason, hold.message, (mutation,))

    def _quotas_of(self, namespace: str) -> list[Quota]:
        quotas = self._quotas.get(namespace, {})
        return [quotas[key] for key in sorted(quotas)]

    def _look_again_in(self, namespaces: AbstractSet[str]) -> None:
        if namespaces:
            self._recheck.update({key: None for key in self._waiting if key.namespace in namespaces})

    def explain(self, key: Key, supply: Amounts) -> Manifest:
        """Why the group waits at the gate, judged anew, or that it does not; nothing is decided."""
        group = self._demand.groups.get(key)
        if group is None:
            return unknown(key.name)
        waiting = (self._demand.groups[other] for other in self._waiting if other not in self._assumed)
        line = sorted((other for other in waiting if other.queue == group.queue), key=self._order)
        hold = self._gate.judge(group, self._room(supply)) if group in line else None
        answer = gate_answer(group, hold, line, self._gate.minimum(group))
        return answer | {"quotas": quota_lines(self._quotas_of(key.namespace))}

    def check(self) -> list[str]:
        """The invariants that do not hold."""
        return [f"{key} waits but is gone" for key in self._waiting if key not in self._demand.groups]


def condition(kind: str, status: str, reason: str, message: str, now: int) -> Manifest:
    """A condition of type ``kind`` as of now."""
    return {
        "type": kind,
        "status": status,
        "reason": str(reason),
        "message": message,
        "lastTransitionTime": _stamp(now),
    }
