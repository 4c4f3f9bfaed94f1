"""Pods that have to leave their node because the node says so: an agent asks, and this decides, once for each time it asks.

Not on stale words: what was heard too long ago is not meant any more. The cluster side refuses what a disruption budget
forbids; the agent asks for another pod then.
"""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

from kube import Decision, Key, Mutation, Object, Store, Verb
from kube.node_evictions import Wish, asked
from kube.pods import is_finished
from slo_controller.domain.names import METRIC, POD

EVICTED = "PodEvictedForNode"
STALE_MS = 60_000


class Evictions:
    """Decides. ``answered`` tells which wishes were: by the uid of the pod, when its node had asked; what is decided is added."""

    def __init__(self, answered: dict[str, int]) -> None:
        self._answered = answered

    def decide(self, nodes: Iterable[str], store: Store, now: int, in_flight: AbstractSet[Key]) -> list[Decision]:
        """The evictions that ``nodes`` ask for and that were not decided yet."""
        return [decision for node in sorted(nodes) for decision in self._of(node, store, now, in_flight)]

    def _of(self, node: str, store: Store, now: int, in_flight: AbstractSet[Key]) -> Iterator[Decision]:
        wishes = asked(store.get(Key(METRIC, "", node)))
        if now - wishes.heard > STALE_MS:
            return
        for wish in wishes.pods:
            pod = _pod_of(wish, node, store)
            if pod is None or pod.key in in_flight or self._answered.get(wish.uid) == wish.at:
                continue
            self._answered[wish.uid] = wish.at
            message = f"node {node}: {wish.message}"
            mutation = Mutation(Verb.EVICT, pod.key, pod.uid)
            yield Decision(EVICTED, pod.key, pod.uid, wish.reason, message, (mutation,))


def _pod_of(wish: Wish, node: str, store: Store) -> Object | None:
    """The pod that a wish means, if it is there, on that node, and not on its way out."""
    pod = store.get(Key(POD, wish.namespace, wish.name))
    if pod is None or pod.uid != wish.uid or pod.spec.get("nodeName") != node:
        return None
    return None if pod.deleting or is_finished(pod) else pod
