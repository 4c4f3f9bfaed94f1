"""Online pods that are being disturbed, before use alone would show it: their tasks wait for what best effort has.

What a pod waits for anyway is learned while it works and best effort does nothing much. To meet its own quota is no disturbance,
unless it happens much more often than usual: what shares a cache with others needs more time for the same work. Where the
processor counts them, that is seen at once: in more cycles per instruction than usual.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from node_agent.domain.colocation.groups import Tier
from node_agent.domain.colocation.pods import NodePod
from node_agent.domain.colocation.samples import Sample, Stall
from node_agent.domain.colocation.situation import Situation

LEAST_STALL = 100
"""Thousandths of the time: waiting less than a tenth of it is no disturbance."""
CPI_PERCENT = 150
"""Of its usual cycles per instruction: at more than that something else has what a pod's caches and its way to the memory had."""
FACTOR = 3
"""How many times its usual stall a pod has to wait to count as disturbed."""
LEARN_SHARE = 8
"""The part of a new measurement in what is usual: one in so many."""
LEAST_USE = 20
"""Milli-cores: what a pod that does less waits for is not what is usual for it when it works."""

KINDS = Stall._fields

Key = tuple[str, str]
"""A pod and the kind of its waiting."""


@dataclass(frozen=True, slots=True)
class Disturbance:
    """``victim`` waited for ``kind`` in ``stall`` thousandths of the time, usually in ``usual``; most likely for ``culprit``.

    Of the kind ``cpi`` both are cycles for each thousand instructions.
    """

    victim: str
    culprit: str
    kind: str
    stall: int
    usual: int

    @property
    def key(self) -> Key:
        return self.victim, self.kind

    def described(self, pods: Mapping[str, NodePod]) -> str:
        """In words, with the names of both."""
        victim, culprit = (pods[uid].title if uid in pods else uid for uid in (self.victim, self.culprit))
        felt = f"waits for {self.kind} {self.stall / 10:.1f} % of the time (usually {self.usual / 10:.1f} %)"
        if self.kind == "cpi":
            felt = f"needs {self.stall / 1000:.2f} cycles per instruction (usually {self.usual / 1000:.2f})"
        return f"{victim} {felt}; {culprit} takes most of what best effort has"


def disturbances(
    situation: Situation, sample: Sample, usual: Mapping[str, Stall], acquitted: Mapping[Key, int]
) -> list[Disturbance]:
    """The online pods that wait much longer than they usually do, and than they were ``acquitted`` of waiting by themselves."""
    return [
        one
        for uid, stall in sorted(sample.stalls.items())
        if _is_served(situation.pods.get(uid))
        for one in _disturbances(situation, sample, uid, stall, usual.get(uid), acquitted)
    ]


def _disturbances(
    situation: Situation, sample: Sample, uid: str, stall: Stall, usual: Stall | None, acquitted: Mapping[Key, int]
) -> Iterable[Disturbance]:
    for kind, now, known in zip(KINDS, stall, usual or Stall(), strict=True):
        then = max(known, acquitted.get((uid, kind), 0))
        own_limit = kind == "cpu" and any(victim == uid for victim, _ in sample.throttled)
        unknown = (kind == "quota" and usual is None) or (kind == "cpi" and not then)
        disturbed = now * 100 > then * CPI_PERCENT if kind == "cpi" else now >= max(LEAST_STALL, then * FACTOR)
        if own_limit or unknown or not disturbed:
            continue
        best_effort = situation.best_effort
        culprit = max(best_effort, key=lambda one: (_takes(sample, one, kind), one.title), default=None)
        if culprit is not None:
            yield Disturbance(uid, culprit.uid, kind, now, then)


def _is_served(pod: NodePod | None) -> bool:
    return pod is not None and pod.online and pod.tier is not Tier.BEST_EFFORT


def _takes(sample: Sample, pod: NodePod, kind: str) -> int:
    if kind == "memory":
        return sample.of(pod.uid).memory_bytes
    return sample.stalls.get(pod.uid, Stall()).io if kind == "io" else sample.of(pod.uid).cpu_milli


def learned(
    situation: Situation, sample: Sample, before: Mapping[str, Stall], keep: Collection[str]
) -> dict[str, Stall]:
    """What is usual, by the newest measurement of all pods but those to ``keep``.

    It begins at nothing: pods wait longest when they start, and that is not what is usual.
    """
    usual: dict[str, Stall] = {}
    for uid, stall in sample.stalls.items():
        pod, known = situation.pods.get(uid), before.get(uid)
        if pod is None or not pod.online:
            continue
        if uid in keep or sample.of(uid).cpu_milli < LEAST_USE:
            if known is not None:
                usual[uid] = known
        else:
            usual[uid] = _nearer(known or Stall(), stall)
    return usual


def _nearer(known: Stall, new: Stall) -> Stall:
    mean = Stall(*(old + (one - old) // LEARN_SHARE for old, one in zip(known, new, strict=True)))
    # There is one of them at most: cycles are none of a part of the time, and are not always counted.
    return mean if known.cpi and new.cpi else mean._replace(cpi=known.cpi or new.cpi)
