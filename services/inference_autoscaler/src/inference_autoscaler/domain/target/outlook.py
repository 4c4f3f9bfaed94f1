"""How a service with a goal goes on from now: who starts and when he will serve, and what has to pass before replicas may go."""

from collections.abc import Iterator

from inference_autoscaler.domain.target.aim import Aim, Pursuit
from inference_autoscaler.domain.target.plan import Fleet, plan
from kube import rfc3339


def outlook(pursuit: Pursuit, aim: Aim, fleet: Fleet, percent: int, now: int) -> list[str]:
    """In lines for people. ``percent`` is its part of the requests."""
    lines = [f"goal: {aim.goal}, with {aim.slots} requests at a time and replica"]
    if pursuit.knows(now):
        lines.append(plan(pursuit.watch, aim.goal, pursuit.model(aim), fleet, percent, aim.spare).why)
    return [*lines, *_starting(fleet, now), *_holding(pursuit, aim, now)]


def _starting(fleet: Fleet, now: int) -> Iterator[str]:
    if fleet.starting:
        times = ", ".join(rfc3339(now + eta) for eta in sorted(fleet.starting))
        yield f"{fleet.ready} of {fleet.wanted} replicas serve; {len(fleet.starting)} start, and will serve by {times}"
    else:
        yield f"{fleet.ready} of {fleet.wanted} replicas serve, none starts"


def _holding(pursuit: Pursuit, aim: Aim, now: int) -> Iterator[str]:
    """What was needed of late counts for a while."""
    scale = pursuit.model(aim).scale
    held = pursuit.watch.held(scale)
    top = max(held, key=lambda one: (max(one.level_milli, one.need_milli), one.end), default=None)
    if top is not None and top.end + scale.held_ms > now and max(top.level_milli, top.need_milli) > 0:
        amount = max(top.level_milli, top.need_milli) / 1000
        yield f"no fewer before {rfc3339(top.end + scale.held_ms)}: {amount:.1f} slots were needed at {rfc3339(top.end)}"
    else:
        yield "fewer as soon as less is expected: nothing of late needed more"
