"""Which pods have to leave the node: as few as free what is needed, those whose end costs least first.

Four reasons, in this order; what one frees counts for the next, and so does what pods will free that are on their way out:

- best effort gets too little CPU of what it asked for (BECPUEvict)
- what pods asked for of lent resources is more than the node lends by now (CPUAllocatableEvict, MemoryAllocatableEvict)
- the node's CPU is used up to a threshold (CPUEvict)
- the node's memory is used up to a threshold (BEMemoryEvict, MemoryEvict)

Nothing is evicted for what was measured too long ago, and nothing for what was not measured.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kube.node_evictions import Wish
from node_agent.domain.colocation.eviction_goals import Goal, Kind, goals
from node_agent.domain.colocation.history import History
from node_agent.domain.colocation.node_slo import MOST_PRIORITY
from node_agent.domain.colocation.pods import NEVER, NodePod
from node_agent.domain.colocation.situation import Situation

PATIENCE_MS = 15_000
"""A pod that was asked to leave and does not begin to within this time is not waited for."""
PASSED_OVER_MS = 120_000
"""Nor asked again within this time: a budget, say, keeps it."""
PAUSE_MS = {Kind.CPU: 20_000, Kind.MEMORY: 4_000}
"""After an eviction nobody else goes for the same resource for so long."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Who was asked to leave, and when; and until when nobody else is, by resource."""

    wishes: Mapping[str, Wish] = field(default_factory=dict)
    paused_until: Mapping[Kind, int] = field(default_factory=dict)


NOBODY = Asked()


def wishes(situation: Situation, history: History, asked: Asked) -> Asked:
    """Who is asked to leave from now on: those of before that are still there, and those that have to go too."""
    now = situation.now
    kept = {
        uid: wish for uid, wish in asked.wishes.items() if uid in situation.pods and 0 <= now - wish.at < PASSED_OVER_MS
    }
    paused = {kind: until for kind, until in asked.paused_until.items() if now < until <= now + PAUSE_MS[kind]}
    if not situation.slo.thresholds.enabled or situation.fresh is None:
        return Asked(kept, paused)
    leaving, resting = _leaving(situation, kept), frozenset(paused)
    for goal in goals(situation, history):
        if goal.kind in resting:
            continue
        chosen = _victims(goal, situation, leaving, kept)
        kept |= {
            pod.uid: Wish(pod.uid, pod.namespace, pod.name, goal.feature, goal.described(pod), now) for pod in chosen
        }
        leaving += chosen
        if chosen:
            paused[goal.kind] = now + PAUSE_MS[goal.kind]
    return Asked(kept, paused)


def current(asked: Asked, now: int) -> tuple[Wish, ...]:
    """The wishes that are still meant, in the order in which they were made."""
    return tuple(wish for wish in asked.wishes.values() if now - wish.at < PATIENCE_MS)


def _leaving(situation: Situation, asked: Mapping[str, Wish]) -> list[NodePod]:
    """Pods that are on their way out, or were asked to leave just now."""
    return [
        pod
        for pod in situation.pods.values()
        if pod.deleting or (pod.uid in asked and situation.now - asked[pod.uid].at < PATIENCE_MS)
    ]


def _victims(goal: Goal, situation: Situation, leaving: Iterable[NodePod], asked: Mapping[str, Wish]) -> list[NodePod]:
    need = goal.amount - sum(goal.frees(pod) for pod in leaving)
    chosen: list[NodePod] = []
    for pod in sorted(situation.pods.values(), key=_order(goal)):
        if need <= 0:
            break
        if pod.deleting or pod.uid in asked or not goal.may(pod) or not _evictable(pod, goal) or goal.frees(pod) <= 0:
            continue
        chosen.append(pod)
        need -= goal.frees(pod)
    return chosen


def _evictable(pod: NodePod, goal: Goal) -> bool:
    named = goal.features_of(pod)
    allowed = pod.eviction_features is None or bool(named & pod.eviction_features)
    return allowed and pod.priority <= MOST_PRIORITY and pod.eviction_cost < NEVER


def _order(goal: Goal) -> Callable[[NodePod], tuple[object, ...]]:
    """The order of all reasons: by the pods' own word, by priority, by cost, what frees most, the youngest."""

    def key(pod: NodePod) -> tuple[object, ...]:
        return (
            pod.eviction_priority,
            pod.priority,
            pod.sub_priority,
            pod.eviction_cost,
            -goal.weight(pod),
            _backwards(pod.created),
            _backwards(pod.title),
        )

    return key


def _backwards(text: str) -> tuple[int, ...]:
    return tuple(-ord(letter) for letter in text)
