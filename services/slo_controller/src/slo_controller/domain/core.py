"""The core of slo_controller: facts mark nodes, marked nodes are looked at, and decisions about them come out."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict

from kube import Decision, Event, Key, Manifest, Outcome, Store
from kube.node_slo import NODE_SLO
from kube.runs import runs
from resources import format_amounts
from slo_controller.domain.configuration.config_map import CONFIG_MAP, Configuration
from slo_controller.domain.configuration.parts import COLOCATION_KEY, HOST_APPLICATIONS, PARTS
from slo_controller.domain.configuration.reports import report
from slo_controller.domain.desk import LendingDesk
from slo_controller.domain.evictions import Evictions
from slo_controller.domain.lending.lender import lent_now
from slo_controller.domain.memory import Memory
from slo_controller.domain.names import METRIC, NODE, POD, RECOMMENDATION, TOPOLOGY
from slo_controller.domain.node_slos import FIELDS, NodeSLOs
from slo_controller.domain.nodes import Nodes
from slo_controller.domain.policy import SloPolicy
from slo_controller.domain.prediction.workloads import REPLICA_SET
from slo_controller.domain.ratios import Ratios
from slo_controller.domain.recommending.advice import Advice

_INTEREST = frozenset((NODE, POD, "ConfigMap", METRIC, NODE_SLO, REPLICA_SET, TOPOLOGY, RECOMMENDATION))


def concerns(kind: str, metadata: Manifest) -> bool:
    """Whether objects of ``kind`` can matter to what is decided here."""
    return kind in _INTEREST


class SloCore:
    """How much may be lent on each node, and under which rules? (the Core protocol)

    In words: whenever something of a node, of its pods, of what was measured on it or of the configuration changes, all that is
    decided about the node is computed from the present facts and the memory, and told where it differs from what the node has.
    What was used is learnt once a minute, for all nodes together.
    """

    def __init__(self, policy: SloPolicy | None = None) -> None:
        self._policy = policy or SloPolicy()
        self._store, self._is_fed = Store(), False
        self._configuration = Configuration(_bases(self._policy))
        self._memory = Memory(self._configuration)
        self._nodes = Nodes(self._store)
        self._lending = LendingDesk(self._nodes, self._memory)
        self._ratios = Ratios(self._configuration)
        self._advice = Advice(self._store)
        self._slos = NodeSLOs(self._configuration, self._policy.node_slo)
        self._due: dict[str, None] = {}
        self._evictions, self._asking = Evictions(self._memory.evicted), dict[str, None]()
        self._now = 0

    def read_from(self, store: Store) -> None:
        """Look everything up in ``store``, where somebody else puts what changes; without it in a store of its own."""
        self._store, self._is_fed = store, True
        self._nodes.store = self._advice.store = store

    def fold(self, events: Sequence[Event], now: int) -> None:
        """Take in what one change set changed."""
        self._now = max(now, self._now)
        for event in () if self._is_fed else events:
            if event.new is not None:
                self._store.put(event.new)
            else:
                self._store.remove(event.key)
        for run in runs(events):
            self._due.update(dict.fromkeys(self._nodes.fold(run)))
            self._fold_run(run)

    def _fold_run(self, run: Sequence[Event]) -> None:
        kind = run[0].key.kind
        self._advice.fold(run)
        if kind == POD and run[0].new is None:
            for event in run:
                self._memory.evicted.pop(event.object.uid, None)
        elif kind == "ConfigMap":
            for event in run:
                if event.key == CONFIG_MAP:
                    self._fold_config(event)
        elif kind == NODE_SLO:
            self._due.update((event.key.name, None) for event in run)
        elif kind == METRIC:
            self._asking.update((event.key.name, None) for event in run)

    def _fold_config(self, event: Event) -> None:
        if self._configuration.fold(event.new):
            self._memory.changed = True
            self._due.update(dict.fromkeys(self._nodes.names()))

    def hear(self, service: str, decision: Decision) -> None:
        """This service listens to facts only."""

    def assume(self, decision_id: str, decision: Decision) -> None:
        """Nothing to note: the subject is in flight until its outcome, and left alone as long."""

    def settle(self, outcome: Outcome) -> None:
        """Look at the object again."""
        if outcome.subject.kind in (NODE, NODE_SLO):
            self._due[outcome.subject.name] = None
        elif outcome.subject.kind == RECOMMENDATION:
            self._advice.look_again(outcome.subject)

    def decide(self, now: int, in_flight: AbstractSet[Key]) -> list[Decision]:
        """All that should happen now."""
        self._now = now
        lending = self._lending
        due, self._due = [*self._due, *lending.ring(now)], {}
        lending.sift(due, now)
        names = sorted({*due, *lending.count(now)})
        decisions = report(self._configuration, self._store.get(CONFIG_MAP), in_flight)
        decisions += self._decide_rules(names, in_flight)
        ratios = self._decide_ratios(names, in_flight)
        lent = lending.decide(names, now, {*in_flight, *(decision.subject for decision in ratios)})
        decisions += [*ratios, *lent]
        if lending.learnt:
            lending.learnt = False
            self._advice.learnt()
        decisions += self._advice.decide(self._memory.past, now, in_flight)
        return decisions + self._decide_evictions(now, in_flight)

    def _decide_evictions(self, now: int, in_flight: AbstractSet[Key]) -> list[Decision]:
        asking, self._asking = self._asking, {}
        found = self._evictions.decide(asking, self._store, now, in_flight)
        self._memory.changed |= bool(found)
        return found

    def _decide_rules(self, names: Iterable[str], in_flight: AbstractSet[Key]) -> Iterable[Decision]:
        for name in names:
            node, key = self._nodes.get(name), Key(NODE_SLO, "", name)
            if node is not None and key not in in_flight:
                decision = self._slos.decide(node, self._store.get(key))
                if decision is not None:
                    yield decision

    def _decide_ratios(self, names: Iterable[str], in_flight: AbstractSet[Key]) -> list[Decision]:
        nodes = (node for name in names if (node := self._nodes.get(name)) is not None and node.key not in in_flight)
        found = (self._ratios.decide(node, self._nodes.topology(node.name)) for node in nodes)
        return [decision for decision in found if decision is not None]

    def deadline(self) -> int | None:
        """When a node has to be looked at though nothing changes."""
        return self._lending.due(self._now)

    def remember(self) -> bytes | None:
        """What was learnt and noted since the last call."""
        if not self._memory.changed:
            return None
        self._memory.changed = False
        return self._memory.dump()

    def restore(self, content: bytes) -> None:
        """Take up what a predecessor remembered."""
        self._memory.load(content)

    def query(self, name: str, arguments: Manifest) -> Manifest:
        """``settings``: what the service was told at its start; ``explain``: what holds on the node ``arguments["name"]``."""
        if name == "settings":
            return asdict(self._policy)
        if name != "explain":
            raise KeyError(f"slo_controller answers explain and settings, not {name!r}")
        return self._explain(str(arguments.get("name") or ""), int(arguments.get("now") or self._now))

    def _explain(self, name: str, now: int) -> Manifest:
        standing = self._lending.standing(name, now)
        if standing is None:
            return {"found": False, "message": f"node {name} is not there"}
        rules = self._slos.spec(standing.node) if self._slos.is_wanted(standing.node) else {}
        answer: Manifest = {"found": True, "rules": rules, "lent": format_amounts(lent_now(standing.node))}
        if standing.computed is None:
            return {**answer, "verdict": "LendsNothing", "rule": standing.reason, "message": standing.words}
        lines = [one.explained() for one in standing.computed.lent]
        lines += self._lending.notes(standing)
        ratio = self._ratios.normalization(standing.node, self._nodes.topology(name))
        lines += [*standing.computed.complaints, *([ratio] if isinstance(ratio, str) else [])]
        return {**answer, "verdict": "Lends", "message": "\n".join(lines)}

    def check(self) -> list[str]:
        """The invariants that do not hold."""
        return [f"{key} is in force and is no key" for key in self._configuration.accepted.keys() - PARTS.keys()]


def _bases(policy: SloPolicy) -> dict[str, Manifest]:
    """What an operator chose, by the key of the ConfigMap that it stands under."""
    bases = {key: dict(policy.node_slo.get(name) or {}) for key, name in FIELDS.items() if name != HOST_APPLICATIONS}
    return {
        **bases,
        "host-application-config": {"applications": policy.node_slo.get(HOST_APPLICATIONS) or []},
        COLOCATION_KEY: policy.colocation,
    }
