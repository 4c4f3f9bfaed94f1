"""The fold of the facts as this service looks at it: objects by key, and pods by the node that they are on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from descheduler.domain.cluster.pod_traits import POD, is_active, node_of
from kube import Event, Key, Object, Store

NODE = "Node"


@dataclass(slots=True)
class ClusterView:
    """``store`` is where facts are folded; only the index of pods is this service's own."""

    store: Store = field(default_factory=Store)
    _on: dict[str, dict[Key, None]] = field(default_factory=dict)

    def fold(self, run: Sequence[Event]) -> None:
        """Pods came, moved or went alike."""
        old, new = run[0].old, run[0].new
        if old is not None and new is not None and old.body is new.body:
            return  # as with all of the run
        for event in run:
            before = node_of(event.old) if event.old is not None else ""
            after = node_of(event.new) if event.new is not None else ""
            if before != after:
                self._move(event.key, before, after)

    def _move(self, key: Key, before: str, after: str) -> None:
        if before:
            there = self._on.get(before, {})
            there.pop(key, None)
            if not there:
                self._on.pop(before, None)
        if after:
            self._on.setdefault(after, {})[key] = None

    def nodes(self) -> list[Object]:
        """All nodes, by name."""
        return sorted(self.store.of_kind(NODE).values(), key=lambda node: node.name)

    def node(self, name: str) -> Object | None:
        return self.store.get(Key(NODE, "", name))

    def all_on(self, node: str) -> list[Object]:
        """Every pod that is bound to a node, ended ones too, by key."""
        found = (self.store.get(key) for key in sorted(self._on.get(node, ())))
        return [pod for pod in found if pod is not None]

    def pods_on(self, node: str) -> list[Object]:
        """The pods that hold their place on a node, by key."""
        return [pod for pod in self.all_on(node) if is_active(pod)]

    def placed(self) -> Iterator[Object]:
        """Every pod that holds a place on a node, by node and key."""
        for node in sorted(self._on):
            yield from self.pods_on(node)

    def check(self) -> list[str]:
        """Whether the index says what the facts say."""
        held = {key: node for node, keys in self._on.items() for key in keys}
        told = {key: node_of(pod) for key, pod in self.store.of_kind(POD).items() if node_of(pod)}
        return [
            f"{key} is on {told.get(key)} and not on {held.get(key)}"
            for key in sorted(held.keys() | told.keys())
            if held.get(key) != told.get(key)
        ]
