"""Best effort is held for the sake of online pods that it disturbs, before use alone would ask for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from node_agent.domain.colocation.disturbances import Disturbance, disturbances, learned
from node_agent.domain.colocation.samples import Stall
from node_agent.domain.colocation.situation import Situation
from node_agent.domain.colocation.trials import Trial, tried

LEAST_MS = 500
"""In less time a single moment's waiting is much."""
IDLE_PERCENT = 5
"""Of the node: while best effort uses less, what pods wait for is their own doing."""


@dataclass(frozen=True, slots=True)
class Calm:
    """What is usual for each online pod, and how far it was found out whose doing is what is not."""

    usual: Mapping[str, Stall] = field(default_factory=dict)
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
    trial = tried(before.trial, seen, used, sample.at)
    found = [one for one in seen if trial.held_milli is not None and one.key in trial.suspects]
    return Calm(usual, trial, sample.at), tuple(found)
