"""How many replicas keep a goal: what is expected and a margin, what the recent past needed, and what drains those that wait.

Each of these is a number of slots; the largest of them decides, and the plan says which it was, with all figures.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from inference_autoscaler.domain.exact import REPLICAS_MAX, ceil_div
from inference_autoscaler.domain.target.goal import Goal
from inference_autoscaler.domain.target.margin import margin
from inference_autoscaler.domain.target.spans import level_of
from inference_autoscaler.domain.target.watch import Model, Watch

_DRAIN_PARTS = 2
"""Those that wait are to be gone within half the time of a start after it."""
_STEADY_PARTS = 3
"""A replica is given up once a third of another one would be idle besides, or, where that is less, a quarter of the margin."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """The replicas there are: how many are wanted, how many serve, and in how many milliseconds each of the others will."""

    wanted: int
    ready: int
    starting: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """``why`` has the figures."""

    pods: int
    why: str


def plan(watch: Watch, goal: Goal, model: Model, fleet: Fleet, percent: int = 100, spare: int = 0) -> Plan:
    """What keeps ``goal`` from now on, for ``percent`` of the requests. ``spare`` replicas are kept beyond that."""
    expected, level = watch.expected(model.scale)
    foretold, period = watch.seasons.floor(watch.heard, watch.heard + 2 * model.start_ms)
    base = max(expected, foretold)
    free = margin(base, watch.spans)
    needed = max((one.need_milli for one in watch.held(model.scale)), default=0)
    usual = max(base + free.milli, needed) * percent // 100
    draining = _draining(watch, goal, model, fleet, percent)
    slack = min(model.slots * 1000 // _STEADY_PARTS, free.milli * percent // 400)
    pods = _pods(max(usual, draining), model.slots, fleet.wanted - spare, slack) + spare
    why = [
        f"{_shown(level)} requests at a time of late, {_shown(expected)} at most in {model.scale.held_ms // 60_000} minutes",
        f"{free.factor_milli / 1000:.1f} scatters of {_shown(free.scatter_milli)} kept free",
        f"{_shown(needed)} slots would have kept {goal}",
        f"a replica has {model.slots} and starts in {model.start_ms / 1000:g} s",
    ]
    if foretold > expected:
        why.insert(1, f"{_shown(foretold)} foretold by the last {period // 60_000} minutes")
    if draining > usual:
        why.insert(0, f"{_shown(draining)} slots to be rid of those that wait")
    if percent != 100:
        why.append(f"{percent} % of the requests")
    if spare:
        why.append(f"{spare} spare")
    return Plan(pods, "; ".join(why))


def _pods(slots_milli: int, slots: int, wanted: int, slack_milli: int) -> int:
    """So many slots in replicas; going down takes a little more than not needing the last one."""
    pods = ceil_div(slots_milli, slots * 1000)
    if 0 < pods < wanted:
        pods = min(wanted, ceil_div(slots_milli + slack_milli, slots * 1000))
    return min(pods, REPLICAS_MAX)


def _draining(watch: Watch, goal: Goal, model: Model, fleet: Fleet, percent: int) -> int:
    """The slots that are rid of those that wait too long within half a start's time after it; 0 where none do.

    Each replica drains from when it serves, those of now from a start later on: what others will have drained by then is not asked for
    again. While any wait none of those that are starting is given up.
    """
    service, slots = watch.offered.service_us, model.slots * 1000
    recent = watch.offered.since(watch.heard - model.scale.span_ms)
    present = max(level_of(watch.offered.buckets), level_of(recent)) * percent // 100
    waiting = watch.offered.in_flight * percent // 100 - fleet.ready * slots
    if waiting <= 0 or waiting * service <= fleet.ready * slots * watch.wait_ms(goal) * 1000:
        return 0
    after = model.start_ms // _DRAIN_PARTS
    until = model.start_ms + after
    served = slots * (fleet.ready * until + sum(max(0, until - eta) for eta in fleet.starting))
    left = waiting * service // 1000 + present * until - served
    return (fleet.ready + len(fleet.starting)) * slots + max(0, left) // after


def _shown(milli: int) -> str:
    return f"{milli / 1000:.1f}"
