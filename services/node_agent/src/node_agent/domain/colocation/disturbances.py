"""Online pods that are being disturbed, before use alone would show it: their tasks wait for what best effort has.

What a pod waits for anyway is learned while it works and best effort does nothing much. To meet its own quota is no disturbance,
unless it happens much more often than usual. What shares a cache with others needs more time for the same work: where the
processor counts them, that is seen in more cycles per instruction than usual; elsewhere in more time between two waits. What is
usual there is unknown as long as best effort has always been beside it: then that is found out by holding best effort.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from node_agent.domain.colocation.groups import Tier
from node_agent.domain.colocation.pods import NodePod
from node_agent.domain.colocation.samples import Sample, Stall
from node_agent.domain.colocation.situation import Situation

LEAST_STALL = 100
"""Thousandths of the time: waiting less than a tenth of it is no disturbance."""
COSTS: Mapping[str, int] = {"cpi": 150, "stretch": 120}
"""What work costs, and the percent of the usual from which on something else has what a pod's caches and its way to memory had."""
FACTOR = 3
"""How many times its usual stall a pod has to wait to count as disturbed."""
LEARN_SHARE = 8
"""The part of a new measurement in what is usual: one in so many."""
LEAST_USE = 20
"""Milli-cores: what a pod that does less waits for is not what is usual for it when it works."""
REMEMBERED_MS = 3_600_000
"""For so long it is known what is usual for a workload of which no pod is here: its next one need not be found out about."""

KINDS = Stall._fields

Key = tuple[str, str]
"""A workload and what one of its pods feels."""


class Usual(NamedTuple):
    """What is usual for the pods of a workload, of which one was last here ``at`` a moment."""

    stall: Stall
    at: int


@dataclass(frozen=True, slots=True)
class Disturbance:
    """``victim``, a pod of ``workload``, waited for ``kind`` in ``stall`` thousandths of the time, usually in ``usual``.

    Most likely for ``culprit``. Of the kinds of ``COSTS`` both are what they are in ``Stall``; 0 is not known to be usual.
    """

    victim: str
    culprit: str
    kind: str
    stall: int
    usual: int
    workload: str

    @property
    def key(self) -> Key:
        return self.workload, self.kind

    def described(self, pods: Mapping[str, NodePod]) -> str:
        """In words, with the names of both."""
        victim, culprit = (pods[uid].title if uid in pods else uid for uid in (self.victim, self.culprit))
        felt = f"waits for {self.kind} {self.stall / 10:.1f} % of the time (usually {self.usual / 10:.1f} %)"
        if self.kind == "cpi":
            felt = f"needs {self.stall / 1000:.2f} cycles per instruction (usually {self.usual / 1000:.2f})"
        if self.kind == "stretch":
            felt = f"computes for {self.stall / 1000:.2f} ms at a time (usually {self.usual / 1000:.2f})"
        return f"{victim} {felt}; {culprit} takes most of what best effort has"


def disturbances(
    situation: Situation, sample: Sample, usual: Mapping[str, Usual], acquitted: Mapping[Key, int]
) -> list[Disturbance]:
    """The online pods that feel much more than they usually do, and than they were ``acquitted`` of feeling by themselves."""
    return [
        one
        for pod, stall in served(situation, sample)
        for one in _disturbances(situation, sample, pod, stall, usual.get(pod.workload), acquitted)
    ]


def served(situation: Situation, sample: Sample) -> Iterable[tuple[NodePod, Stall]]:
    """The pods that best effort must not disturb, and what they feel, in the order of their uids."""
    for uid, stall in sorted(sample.stalls.items()):
        pod = situation.pods.get(uid)
        if pod is not None and pod.online and pod.tier is not Tier.BEST_EFFORT:
            yield pod, stall


def _disturbances(
    situation: Situation,
    sample: Sample,
    pod: NodePod,
    stall: Stall,
    usual: Usual | None,
    acquitted: Mapping[Key, int],
) -> Iterable[Disturbance]:
    for kind, now, known in zip(KINDS, stall, usual.stall if usual else Stall(), strict=True):
        then = max(known, acquitted.get((pod.workload, kind), 0))
        own_limit = kind == "cpu" and any(victim == pod.uid for victim, _ in sample.throttled)
        if own_limit or (kind == "quota" and usual is None):
            continue
        if now * 100 > then * COSTS[kind] if kind in COSTS else now >= max(LEAST_STALL, then * FACTOR):
            culprit = most_likely(situation, sample, kind)
            if culprit is not None:
                yield Disturbance(pod.uid, culprit.uid, kind, now, then, pod.workload)


def most_likely(situation: Situation, sample: Sample, kind: str) -> NodePod | None:
    """The pod of best effort that has most of what is waited for."""
    return max(situation.best_effort, key=lambda one: (_takes(sample, one, kind), one.title), default=None)


def _takes(sample: Sample, pod: NodePod, kind: str) -> int:
    if kind == "memory":
        return sample.of(pod.uid).memory_bytes
    return sample.stalls.get(pod.uid, Stall()).io if kind == "io" else sample.of(pod.uid).cpu_milli


def learned(
    situation: Situation, sample: Sample, before: Mapping[str, Usual], keep: Collection[str]
) -> dict[str, Usual]:
    """What is usual, by the newest measurement of all pods but those to ``keep``.

    It begins at nothing: pods wait longest when they start, and that is not what is usual.
    """
    usual = {name: one for name, one in before.items() if 0 <= sample.at - one.at < REMEMBERED_MS}
    for uid, stall in sorted(sample.stalls.items()):
        pod = situation.pods.get(uid)
        if pod is None or not pod.online:
            continue
        known = usual.get(pod.workload)
        if uid not in keep and sample.of(uid).cpu_milli >= LEAST_USE:
            usual[pod.workload] = Usual(_nearer(known.stall if known else Stall(), stall), sample.at)
        elif known is not None:
            usual[pod.workload] = known._replace(at=sample.at)
    return usual


def _nearer(known: Stall, new: Stall) -> Stall:
    mean = Stall(*(old + (one - old) // LEARN_SHARE for old, one in zip(known, new, strict=True)))
    # What work costs is no part of the time, and is not always counted.
    for kind in COSTS:
        old, one = getattr(known, kind), getattr(new, kind)
        if not (old and one):
            mean = mean._replace(**{kind: old or one})
    return mean
