"""A plan: which pods should move, why, and where to. It is made as if each move had happened before the next is thought of."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from descheduler.domain.cluster.fitting import Fitting
from descheduler.domain.cluster.pod_traits import node_of
from descheduler.domain.cluster.view import ClusterView
from descheduler.domain.migration.arbiter import Arbiter
from descheduler.domain.migration.migration_book import Rest
from descheduler.domain.move import Move
from descheduler.domain.policy.policy import DeschedulerPolicy
from kube import Key, Object, rfc3339
from kube.pods import is_finished
from resources import Amounts


class Loads(Protocol):
    """What nodes really use, as the plan changes it."""

    def heats(self, pod: Object, node: str) -> bool:
        """Whether the node would be hot with the pod on it."""

    def measured(self, pod: Object) -> Amounts:
        """What the pod uses where it is; nothing where nobody knows."""

    def move(self, pod: Object, target: str) -> None:
        """The pod goes to ``target``, or is only gone."""


@dataclass(slots=True)
class Plan:
    """``skipped`` says of pods that would have gone why they stay; ``notes`` what strategies found, in sentences.

    ``costs`` are costs of deletion that pods are to have. ``seen_loads`` are those of the plan that this one is a trial of: they
    are asked and not changed.
    """

    view: ClusterView
    policy: DeschedulerPolicy
    arbiter: Arbiter
    moving: dict[Key, str]
    now: int
    loads: Loads | None = None
    resting: Mapping[str, Rest] = field(default_factory=dict)
    moves: list[Move] = field(default_factory=list)
    skipped: dict[Key, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    costs: dict[Key, int] = field(default_factory=dict)
    seen_loads: Loads | None = None
    fitting: Fitting = field(init=False)
    _from_node: Counter[str] = field(default_factory=Counter)
    _from_namespace: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.fitting = Fitting(self.view)
        for key in sorted(self.moving):
            pod = self.view.store.get(key)
            if pod is not None and self.moving[key]:
                self.fitting.move(pod, self.moving[key])
            if pod is not None and self.loads is not None:
                self.loads.move(pod, self.moving[key])

    def fork(self) -> "Plan":
        """A plan that goes on from here, to try what is then taken over or not."""
        made = Plan(
            self.view,
            self.policy,
            self.arbiter.fork(),
            dict(self.moving),
            self.now,
            None,
            self.resting,
            list(self.moves),
        )
        made.seen_loads = self.loads or self.seen_loads
        made._from_node, made._from_namespace = self._from_node.copy(), self._from_namespace.copy()
        return made

    def stays(self, pod: Object) -> str:
        """Why ``pod`` is not to be moved in this round, in words; empty where it may be."""
        if pod.key in self.moving:
            return "it is on the move already"
        rests = self.resting.get(pod.uid)
        if rests is not None and not is_finished(pod):
            self.skipped[pod.key] = f"{rests.why}; it is left alone until {rfc3339(rests.until)}"
            return self.skipped[pod.key]
        why = self.arbiter.refusal(pod) or self.arbiter.hold(pod) or self._full(pod)
        if why:
            self.skipped[pod.key] = why
        return why

    def heats(self, pod: Object, node: str) -> bool:
        """Whether the node would be hot with the pod on it."""
        loads = self.loads or self.seen_loads
        return loads is not None and loads.heats(pod, node)

    def destinations(self, pod: Object, among: Iterable[Object] | None = None) -> Iterator[Object]:
        """The other nodes, of all or of those ``among``, that would take ``pod`` as things will be and not be hot by it."""
        for node in self.view.nodes() if among is None else among:
            if node.name != node_of(pod) and not self.heats(pod, node.name) and not self.fitting.obstacle(pod, node):
                yield node

    def add(self, move: Move) -> None:
        """The pod will move."""
        pod = move.pod
        self.arbiter.admit(pod)
        if not is_finished(pod):
            self.fitting.move(pod, move.target)
            if self.loads is not None:
                move = replace(move, uses=self.loads.measured(pod))
                self.loads.move(pod, move.target)
        self.moves.append(move)
        self.moving[pod.key] = move.target
        self.skipped.pop(pod.key, None)
        self._from_node[node_of(pod)] += 1
        self._from_namespace[pod.namespace] += 1

    def propose(self, pod: Object, strategy: str, message: str, *, leaves: bool = True) -> bool:
        """Move ``pod`` to another node that would take it, the one with most room left; whether it will.

        With ``leaves`` False no other node is looked for: it may be made again where it was.
        """
        if self.stays(pod):
            return False
        target = ""
        if leaves:
            node = min(self.destinations(pod), key=lambda node: (-self.room(node), node.name), default=None)
            if node is None:
                self.skipped[pod.key] = "no other node would take it and stay below its mark"
                return False
            target = node.name
        self.add(Move(pod, strategy, message, target))
        return True

    def room(self, node: Object) -> int:
        """How much of a node's cpu nobody has asked for, in thousandths."""
        return self.fitting.free(node).get("cpu", 0) * 1000 // max(1, self.fitting.whole(node).get("cpu", 0))

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
