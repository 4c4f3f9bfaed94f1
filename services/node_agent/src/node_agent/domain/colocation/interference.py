"""Online pods that are being disturbed, before use alone would show it: their tasks wait for what best effort has.

What a pod waits for anyway is learned while best effort does nothing much. When it waits much longer than that, best effort is
held below what it uses now, and gets it back step by step once nobody was disturbed for a while. To meet its own quota is no
disturbance, unless it happens much more often than usual: what shares a cache with others needs more time for the same work.
Where the processor counts them, that is seen at once: in more cycles per instruction than usual.

To hold best effort is also how it is found out whether it was its doing. Where a pod waits as long as before after some rounds,
it waits for something else: that is what is usual for it from then on, and best effort has its part again at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from node_agent.domain.colocation.groups import Tier
from node_agent.domain.colocation.pods import NodePod
from node_agent.domain.colocation.samples import Sample, Stall
from node_agent.domain.colocation.situation import Situation

LEAST_STALL, LEAST_UNKNOWN_STALL = 100, 300
"""Thousandths of the time: waiting less than a tenth of it is no disturbance, nor less than three where what is usual is not known
yet."""
CPI_PERCENT = 150
"""Of its usual cycles per instruction: at more than that something else has what a pod's caches and its way to the memory had."""
FACTOR = 3
"""How many times its usual stall a pod has to wait to count as disturbed."""
LEARN_SHARE = 8
"""The part of a new measurement in what is usual: one in so many."""
IDLE_PERCENT = 5
"""Of the node: while best effort uses less, what pods wait for is their own doing."""
HOLD_PERCENT = 70
"""Of what best effort uses: what it is held to when it disturbs."""
CALM_ROUNDS = 5
STEP_PERCENT = 10
PROOF_ROUNDS = 3
"""So many rounds best effort is held before it is asked whether that helps."""
HELPED_PERCENT = 75
"""Of what a pod waited when it was found disturbed: at more than that, holding best effort has not helped."""

KINDS = Stall._fields


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

    def described(self, pods: Mapping[str, NodePod]) -> str:
        """In words, with the names of both."""
        victim, culprit = (pods[uid].title if uid in pods else uid for uid in (self.victim, self.culprit))
        felt = f"waits for {self.kind} {self.stall / 10:.1f} % of the time (usually {self.usual / 10:.1f} %)"
        if self.kind == "cpi":
            felt = f"needs {self.stall / 1000:.2f} cycles per instruction (usually {self.usual / 1000:.2f})"
        return f"{victim} {felt}; {culprit} takes most of what best effort has"


@dataclass(frozen=True, slots=True)
class Calm:
    """What is usual for each online pod, and what best effort is held to for the sake of it (None: nothing)."""

    usual: Mapping[str, Stall] = field(default_factory=dict)
    held_milli: int | None = None
    calm_rounds: int = 0
    seen_at: int = 0
    """When the sample that was judged last was taken: no sample is judged twice."""
    suspected: Mapping[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    """By pod and kind of those disturbed in every round so far: the stall at first, and the rounds since."""


UNDISTURBED = Calm()


def judged(situation: Situation, before: Calm) -> tuple[Calm, tuple[Disturbance, ...]]:
    """Who is disturbed by whom in the newest sample, and what follows from it for best effort."""
    sample = situation.fresh
    if not situation.slo.thresholds.enabled:
        return Calm(), ()
    if sample is None or sample.at == before.seen_at:
        return before, ()
    used = situation.used(situation.best_effort)
    active = used * 100 >= situation.machine.cpu_milli * IDLE_PERCENT
    seen = _disturbances(situation, sample, before) if active else []
    innocent = [one for one in seen if _does_not_help(one, before)]
    found = tuple(one for one in seen if one not in innocent)
    usual = _learned(situation, sample, before, keep={one.victim for one in seen}, active=active)
    for one in innocent:
        usual[one.victim] = usual.get(one.victim, Stall())._replace(**{one.kind: one.stall})
    held, calm = (None, 0) if innocent and not found else _held(situation, before, used, bool(found))
    return Calm(usual, held, calm, sample.at, _suspected(found, before)), found


def _does_not_help(one: Disturbance, before: Calm) -> bool:
    first, rounds = before.suspected.get((one.victim, one.kind), (one.stall, 0))
    # No work is done without cycles: what holding can take away is what is beyond the usual.
    base = one.usual if one.kind == "cpi" else 0
    return rounds >= PROOF_ROUNDS and (one.stall - base) * 100 > (first - base) * HELPED_PERCENT


def _suspected(found: tuple[Disturbance, ...], before: Calm) -> dict[tuple[str, str], tuple[int, int]]:
    suspected = {}
    for one in found:
        first, rounds = before.suspected.get((one.victim, one.kind), (one.stall, 0))
        suspected[one.victim, one.kind] = first, rounds + 1
    return suspected


def _disturbances(situation: Situation, sample: Sample, before: Calm) -> list[Disturbance]:
    best_effort = situation.best_effort
    found = []
    for uid, stall in sorted(sample.stalls.items()):
        pod = situation.pods.get(uid)
        if pod is None or not pod.online or pod.tier is Tier.BEST_EFFORT:
            continue
        usual = before.usual.get(uid, Stall())
        least = LEAST_STALL if uid in before.usual else LEAST_UNKNOWN_STALL
        for kind, now, then in zip(KINDS, stall, usual, strict=True):
            own_limit = kind == "cpu" and any(victim == uid for victim, _ in sample.throttled)
            unknown = (kind == "quota" and uid not in before.usual) or (kind == "cpi" and not then)
            disturbed = now * 100 > then * CPI_PERCENT if kind == "cpi" else now >= max(least, then * FACTOR)
            if own_limit or unknown or not disturbed:
                continue
            culprit = max(best_effort, key=lambda one: (_takes(sample, one, kind), one.title), default=None)
            if culprit is not None:
                found.append(Disturbance(uid, culprit.uid, kind, now, then))
    return found


def _takes(sample: Sample, pod: NodePod, kind: str) -> int:
    if kind == "memory":
        return sample.of(pod.uid).memory_bytes
    return sample.stalls.get(pod.uid, Stall()).io if kind == "io" else sample.of(pod.uid).cpu_milli


def _learned(situation: Situation, sample: Sample, before: Calm, keep: set[str], active: bool) -> dict[str, Stall]:
    """What is usual, with the newest measurement where best effort has no part in it; a pod's first one is taken as it is."""
    usual: dict[str, Stall] = {}
    for uid, stall in sample.stalls.items():
        pod, known = situation.pods.get(uid), before.usual.get(uid)
        if pod is None or not pod.online:
            continue
        if uid in keep or active:
            if known is not None:
                usual[uid] = known
        elif known is None:
            usual[uid] = stall
        else:
            usual[uid] = Stall(*(old + (new - old) // LEARN_SHARE for old, new in zip(known, stall, strict=True)))
            if not (known.cpi and stall.cpi):  # there is one of them at most
                usual[uid] = usual[uid]._replace(cpi=known.cpi or stall.cpi)
    return usual


def _held(situation: Situation, before: Calm, used: int, disturbed: bool) -> tuple[int | None, int]:
    held = before.held_milli
    if disturbed:
        return min(used, held if held is not None else used) * HOLD_PERCENT // 100, 0
    calm = before.calm_rounds + 1
    if held is None or calm < CALM_ROUNDS:
        return held, calm
    held += situation.machine.cpu_milli * STEP_PERCENT // 100
    return (None if held >= situation.machine.cpu_milli else held), calm
