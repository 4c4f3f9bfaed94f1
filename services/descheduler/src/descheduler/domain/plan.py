"""A plan: which pods should move, why, and where to. It is made as if each move had happened before the next is thought of."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from descheduler.domain.cluster.fitting import Fitting
from descheduler.domain.cluster.pod_traits import node_of
from descheduler.domain.cluster.view import ClusterView
from descheduler.domain.migration.arbiter import Arbiter
from descheduler.domain.policy.policy import DeschedulerPolicy
from kube import Key, Object
from kube.pods import is_finished


@dataclass(frozen=True, slots=True)
class Move:
    """``target`` is empty where any other node will do, and where the pod is not made again at its place."""

    pod: Object
    strategy: str
    message: str
    target: str = ""


@dataclass(slots=True)
class Plan:
    """``skipped`` says of pods that would have gone why they stay; ``notes`` what strategies found, in sentences."""

    view: ClusterView
    policy: DeschedulerPolicy
    arbiter: Arbiter
    moving: dict[Key, str]
    now: int
    moves: list[Move] = field(default_factory=list)
    skipped: dict[Key, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    fitting: Fitting = field(init=False)
    _from_node: Counter[str] = field(default_factory=Counter)
    _from_namespace: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.fitting = Fitting(self.view)
        for key in sorted(self.moving):
            pod = self.view.store.get(key)
            if pod is not None and self.moving[key]:
                self.fitting.move(pod, self.moving[key])

    def fork(self) -> "Plan":
        """A plan that goes on from here, to try what is then taken over or not."""
        made = Plan(self.view, self.policy, self.arbiter.fork(), dict(self.moving), self.now, list(self.moves))
        made._from_node, made._from_namespace = self._from_node.copy(), self._from_namespace.copy()
        return made

    def stays(self, pod: Object) -> str:
        """Why ``pod`` is not to be moved in this round, in words; empty where it may be."""
        if pod.key in self.moving:
            return "it is on the move already"
        why = self.arbiter.refusal(pod) or self.arbiter.hold(pod) or self._full(pod)
        if why:
            self.skipped[pod.key] = why
        return why

    def destinations(self, pod: Object) -> Iterator[Object]:
        """The other nodes that would take ``pod`` as things will be, by name."""
        for node in self.view.nodes():
            if node.name != node_of(pod) and not self.fitting.obstacle(pod, node):
                yield node

    def add(self, move: Move) -> None:
        """The pod will move."""
        pod = move.pod
        self.arbiter.admit(pod)
        if not is_finished(pod):
            self.fitting.move(pod, move.target)
        self.moves.append(move)
        self.moving[pod.key] = move.target
        self.skipped.pop(pod.key, None)
        self._from_node[node_of(pod)] += 1
        self._from_namespace[pod.namespace] += 1

    def propose(self, pod: Object, strategy: str, message: str, *, leaves: bool = True) -> bool:
        """Move ``pod`` to another node that would take it, the first by name; whether it will.

        With ``leaves`` False no other node is looked for: it may be made again where it was.
        """
        if self.stays(pod):
            return False
        target = ""
        if leaves:
            node = next(self.destinations(pod), None)
            if node is None:
                self.skipped[pod.key] = "no other node would take it"
                return False
            target = node.name
        self.add(Move(pod, strategy, message, target))
        return True

    def _full(self, pod: Object) -> str:
        policy, node = self.policy, node_of(pod)
        for count, limit, where in (
            (len(self.moves), policy.total, "in one round"),
            (self._from_node[node], policy.per_node, f"from {node} in one round"),
            (self._from_namespace[pod.namespace], policy.per_namespace, f"of namespace {pod.namespace} in one round"),
        ):
            if limit is not None and count >= limit:
                return f"at most {limit} pods may leave {where}"
        return ""
