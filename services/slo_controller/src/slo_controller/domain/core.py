"""The core of slo_controller: facts mark nodes, marked nodes are looked at, and decisions about them come out."""

import json
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict

from kube import Decision, Event, Key, Manifest, Object, Outcome, Store
from kube.node_slo import NODE_SLO
from slo_controller.domain.configuration.config_map import CONFIG_MAP, Configuration
from slo_controller.domain.configuration.parts import HOST_APPLICATIONS, PARTS
from slo_controller.domain.configuration.reports import Refusals
from slo_controller.domain.names import METRIC, NODE
from slo_controller.domain.node_slos import FIELDS, NodeSLOs
from slo_controller.domain.policy import SloPolicy

_INTEREST = frozenset((NODE, "Pod", "ConfigMap", METRIC, NODE_SLO))


def concerns(kind: str, metadata: Manifest) -> bool:
    """Whether objects of ``kind`` can matter to what is decided here."""
    return kind in _INTEREST


class SloCore:
    """How much may be lent on each node, and under which rules? (the Core protocol)

    In words: whenever something of a node, of its pods, of what was measured on it or of the configuration changes, all that is
    decided about the node is computed from the present facts, and told where it differs from what the node has.
    """

    def __init__(self, policy: SloPolicy | None = None) -> None:
        self._policy = policy or SloPolicy()
        self._store, self._is_fed = Store(), False
        self._configuration = Configuration(_bases(self._policy))
        self._refusals = Refusals(self._configuration)
        self._slos = NodeSLOs(self._configuration, self._policy.node_slo)
        self._due: dict[str, None] = {}
        self._remembered: bytes | None = None

    def read_from(self, store: Store) -> None:
        """Look everything up in ``store``, where somebody else puts what changes; without it in a store of its own."""
        self._store, self._is_fed = store, True

    def fold(self, events: Sequence[Event], now: int) -> None:
        """Take in what one change set changed."""
        for event in () if self._is_fed else events:
            if event.new is not None:
                self._store.put(event.new)
            else:
                self._store.remove(event.key)
        for event in events:
            self._fold(event)

    def _fold(self, event: Event) -> None:
        key = event.key
        if key == CONFIG_MAP:
            if self._configuration.fold(event.new):
                self._due.update(dict.fromkeys(self._node_names()))
        elif key.kind in (NODE, NODE_SLO):
            self._due[key.name] = None

    def hear(self, service: str, decision: Decision) -> None:
        """This service listens to facts only."""

    def assume(self, decision_id: str, decision: Decision) -> None:
        """Nothing to note: the subject is in flight until its outcome, and left alone as long."""

    def settle(self, outcome: Outcome) -> None:
        """Look at the node again."""
        if outcome.subject.kind in (NODE, NODE_SLO):
            self._due[outcome.subject.name] = None

    def decide(self, now: int, in_flight: AbstractSet[Key]) -> list[Decision]:
        """All that should happen now."""
        decisions = self._refusals.decide(self._store.get(CONFIG_MAP))
        due, self._due = self._due, {}
        for name in sorted(due):
            node = self._store.get(Key(NODE, "", name))
            if node is not None and not node.deleting:
                decisions += self._decide_node(node, in_flight)
        return decisions

    def _decide_node(self, node: Object, in_flight: AbstractSet[Key]) -> Iterable[Decision]:
        key = Key(NODE_SLO, "", node.name)
        if key not in in_flight:
            decision = self._slos.decide(node, self._store.get(key))
            if decision is not None:
                yield decision

    def deadline(self) -> int | None:
        """When a node has to be looked at though nothing changes."""
        return None

    def remember(self) -> bytes | None:
        """The contents of the ConfigMap that are in force, and of which refusals were told."""
        state = {"accepted": self._configuration.accepted, "told": self._refusals.told}
        content = json.dumps(state, sort_keys=True).encode()
        if content == self._remembered or (self._remembered is None and not any(state.values())):
            return None
        self._remembered = content
        return content

    def restore(self, content: bytes) -> None:
        """Take up what a predecessor remembered."""
        state = json.loads(content)
        self._remembered = content
        self._configuration.restore(state["accepted"])
        self._refusals.told = dict(state["told"])

    def query(self, name: str, arguments: Manifest) -> Manifest:
        """``settings``: what the service was told at its start; ``explain``: what holds on the node ``arguments["name"]``."""
        if name == "settings":
            return asdict(self._policy)
        if name != "explain":
            raise KeyError(f"slo_controller answers explain and settings, not {name!r}")
        node = self._store.get(Key(NODE, "", str(arguments.get("name") or "")))
        if node is None:
            return {"found": False, "message": f"node {arguments.get('name')} is not there"}
        return {"found": True, "rules": self._slos.spec(node) if self._slos.are_wanted else {}}

    def check(self) -> list[str]:
        """The invariants that do not hold."""
        return [f"{key} is in force and is no key" for key in self._configuration.accepted.keys() - PARTS.keys()]

    def _node_names(self) -> Iterable[str]:
        return (key.name for key in self._store.of_kind(NODE))


def _bases(policy: SloPolicy) -> dict[str, Manifest]:
    """What an operator chose, by the key of the ConfigMap that it stands under."""
    bases = {key: dict(policy.node_slo.get(name) or {}) for key, name in FIELDS.items() if name != HOST_APPLICATIONS}
    return {
        **bases,
        "host-application-config": {"applications": policy.node_slo.get(HOST_APPLICATIONS) or []},
        "colocation-config": policy.colocation,
    }
