"""Nodes whose agent has fallen silent are not Ready until they are heard again."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from kube import Key, Manifest, Object, Store

SILENT = "NodeStatusUnknown"


@dataclass(frozen=True, slots=True)
class NodeLife:
    """``silence_ms`` is how long an agent may say nothing. Simulated nodes have no agent and are always heard."""

    silence_ms: int
    is_simulated: Callable[[str], bool]

    def changes(self, store: Store, seen: Mapping[str, int], now: int) -> Iterator[tuple[Object, Manifest]]:
        """The nodes whose readiness has to be changed, with the status patch."""
        for node in self._watched(store, seen):
            silent = now - seen[node.name] >= self.silence_ms
            if silent and not _is_silent(node):
                text = f"the node's agent has not been heard for {self.silence_ms // 1000} s"
                yield node, _ready("Unknown", SILENT, text)
            elif not silent and _is_silent(node):
                yield node, _ready("True", "AgentHeard", "the node's agent is heard again")

    def is_marked(self, store: Store, name: str) -> bool:
        """Whether the node is marked as silent."""
        node = store.get(Key("Node", "", name))
        return node is not None and _is_silent(node)

    def deadline(self, store: Store, seen: Mapping[str, int]) -> int | None:
        """When the next node will have been silent for too long."""
        heard = (node for node in self._watched(store, seen) if not _is_silent(node))
        return min((seen[node.name] + self.silence_ms for node in heard), default=None)

    def first_seen(self, store: Store, now: int) -> dict[str, int]:
        """After a start every agent counts as heard just now."""
        return {name: now for _, _, name in store.of_kind("Node") if not self.is_simulated(name)}

    def _watched(self, store: Store, seen: Mapping[str, int]) -> Iterator[Object]:
        found = (store.get(Key("Node", "", name)) for name in list(seen))
        return (node for node in found if node is not None and not self.is_simulated(node.name))


def _is_silent(node: Object) -> bool:
    return any(
        condition.get("type") == "Ready" and condition.get("reason") == SILENT
        for condition in node.status.get("conditions") or ()
    )


def _ready(status: str, reason: str, message: str) -> Manifest:
    return {"conditions": [{"type": "Ready", "status": status, "reason": reason, "message": message}]}
