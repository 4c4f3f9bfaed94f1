"""``count`` and ``env``: what an ``expect`` step can ask of pods that a selector finds."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kube import Key, Object, Store
from testing.scenarios.matchers import Condition, shown
from testing.scenarios.membership import node_of, phase_of
from testing.scenarios.refs import follow
from testing.scenarios.scenario import Mismatch
from testing.scenarios.selectors import Selector
from testing.scenarios.target import Target
from testing.scenarios.values import Range

# A pod that has run to its end keeps its node, so it counts as bound and never as pending.
_COUNTED: dict[str, Callable[[Object], bool]] = {
    "exists": lambda pod: True,
    "bound": lambda pod: bool(node_of(pod)),
    "pending": lambda pod: not node_of(pod),
    "running": lambda pod: phase_of(pod) == "Running",
    "succeeded": lambda pod: phase_of(pod) == "Succeeded",
    "failed": lambda pod: phase_of(pod) == "Failed",
}
COUNTED = frozenset(_COUNTED)


@dataclass(frozen=True, slots=True)
class CountMatcher:
    """``count``: how many of the selected pods are in which state, and over what they are spread."""

    selector: Selector
    states: dict[str, Range] = field(default_factory=dict)
    nodes: Range | None = None
    domain_key: str = ""
    domains: Range | None = None
    per_node: dict[str, Range] = field(default_factory=dict)
    max_per_node: int | None = None

    def mismatch(self, target: Target) -> Mismatch | None:
        store = target.store()
        pods = self.selector.find(store)
        return self._wrong_state(pods) or self._wrong_spread(pods, store)

    def _wrong_state(self, pods: list[Object]) -> Mismatch | None:
        for state, wanted in self.states.items():
            counted = [pod for pod in pods if _COUNTED[state](pod)]
            if len(counted) not in wanted:
                return self._fault(state, str(wanted), f"{len(counted)} of {len(pods)}{_names(counted)}")
        return None

    def _wrong_spread(self, pods: list[Object], store: Store) -> Mismatch | None:
        used = Counter(node_of(pod) for pod in pods if node_of(pod))
        if self.nodes is not None and len(used) not in self.nodes:
            return self._fault("nodes", str(self.nodes), f"{len(used)}{_list(sorted(used))}")
        if self.domains is not None:
            values = {_label(store, node, self.domain_key) for node in used} - {None}
            if len(values) not in self.domains:
                return self._fault(
                    f"domains {self.domain_key}", str(self.domains), f"{len(values)}{_list(sorted(map(str, values)))}"
                )
        for node, wanted in self.per_node.items():
            if used[node] not in wanted:
                return self._fault(f"perNode {node}", str(wanted), str(used[node]))
        fullest = max(used, key=lambda node: (used[node], node), default="")
        if self.max_per_node is not None and fullest and used[fullest] > self.max_per_node:
            return self._fault("maxPerNode", f"at most {self.max_per_node}", f"{used[fullest]} on {fullest}")
        return None

    def _fault(self, what: str, wanted: str, got: str) -> Mismatch:
        return Mismatch(f"count ({self.selector}) {what}", wanted, got)


@dataclass(frozen=True, slots=True)
class EnvMatcher:
    """``env``: a variable of the first container of the selected pods; every pod that is meant must have it so."""

    selector: Selector
    name: str
    condition: Condition
    take: int | None = None
    json_path: tuple[str | int, ...] | None = None

    def mismatch(self, target: Target) -> Mismatch | None:
        pods = self.selector.find(target.store())[: self.take]
        if not pods:
            return Mismatch(f"env ({self.selector}) {self.name}", "a pod", "no such pod")
        return next((fault for pod in pods if (fault := self._compare(pod, target))), None)

    def _compare(self, pod: Object, target: Target) -> Mismatch | None:
        text = target.environment(pod).get(self.name)
        got = text if self.json_path is None else follow(_parsed(text), self.json_path)
        unmet = self.condition.unmet(got)
        return Mismatch(f"env {pod.name} {self.name}", unmet, shown(text)) if unmet else None


def _parsed(text: str | None) -> Any:
    try:
        return json.loads(text or "null")
    except ValueError:
        return None


def _label(store: Store, node: str, key: str) -> str | None:
    found = store.get(Key("Node", "", node))
    return found.labels.get(key) if found else None


def _names(pods: list[Object]) -> str:
    return _list([pod.name for pod in pods])


def _list(names: list[str]) -> str:
    shown_names = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
    return f" ({shown_names})" if names else ""
