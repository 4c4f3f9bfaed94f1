"""Best effort is held for the sake of online pods that it disturbs, before use alone would ask for it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from node_agent.domain.colocation.disturbances import (
    COSTS,
    KINDS,
    Disturbance,
    Key,
    Usual,
    disturbances,
    learned,
    most_likely,
    served,
)
from node_agent.domain.colocation.samples import Sample
from node_agent.domain.colocation.situation import Situation
from node_agent.domain.colocation.trials import Trial, tried

LEAST_MS = 500
"""In less time a single moment's waiting is much."""
IDLE_PERCENT = 5
"""Of the node: while best effort uses less, what pods wait for is their own doing."""


@dataclass(frozen=True, slots=True)
class Calm:
    """What is usual for the pods of each online workload, and how far it was found out whose doing is what is not."""

    usual: Mapping[str, Usual] = field(default_factory=dict)
    trial: Trial = field(default_factory=Trial)
    seen_at: int = 0
    """When the sample that was judged last was taken: no sample is judged twice."""

    @property
    def held_milli(self) -> int | None:
        """What best effort is held to; None: nothing."""
        return self.trial.held_milli


UNDISTURBED = Calm()


def judged(situation: Situation, before: Calm) -> tuple[Calm, tuple[Disturbance, ...]]:
    """Who is disturbed in the newest sample by whom is held for it, and what follows from it for best effort."""
    sample = situation.fresh
    if not situation.slo.thresholds.enabled:
        return Calm(), ()
    if sample is None or sample.at == before.seen_at or sample.over_ms < LEAST_MS:
        return before, ()
    used = situation.used(situation.best_effort)
    active = used * 100 >= situation.machine.cpu_milli * IDLE_PERCENT
    acquitted = {key: one.stall for key, one in before.trial.acquitted.items()}
    seen = disturbances(situation, sample, before.usual, acquitted) if active else []
    usual = learned(situation, sample, before.usual, keep=sample.stalls.keys() if active else ())
    trial = tried(before.trial, seen, _felt(situation, sample), used, sample.at)
    calm = Calm(usual, trial, sample.at)
    if trial.held_milli is None:
        return calm, ()
    found = [one for one in seen if one.key in trial.suspects and (one.usual or one.kind not in COSTS)]
    return calm, tuple(found or _dearer(situation, sample, usual, trial.suspects))


def _dearer(
    situation: Situation, sample: Sample, usual: Mapping[str, Usual], suspects: Mapping[Key, int]
) -> Iterable[Disturbance]:
    """Whose work cost more before best effort was held for it."""
    for pod, _ in served(situation, sample):
        for kind in COSTS:
            then = getattr(usual[pod.workload].stall, kind) if pod.workload in usual else 0
            first, culprit = suspects.get((pod.workload, kind), 0), most_likely(situation, sample, kind)
            if then and first * 100 > then * COSTS[kind] and culprit is not None:
                yield Disturbance(pod.uid, culprit.uid, kind, first, then, pod.workload)


def _felt(situation: Situation, sample: Sample) -> dict[Key, int]:
    """What the pods of each workload feel, where they feel it most."""
    felt: dict[Key, int] = {}
    for pod, stall in served(situation, sample):
        for kind, amount in zip(KINDS, stall, strict=True):
            if amount:
                felt[pod.workload, kind] = max(amount, felt.get((pod.workload, kind), 0))
    return felt
