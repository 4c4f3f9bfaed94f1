"""From what the metrics ask for to what is done: windows against flapping, rates, minimum and maximum."""

from collections.abc import Callable
from dataclasses import dataclass

from inference_autoscaler.domain.exact import REPLICAS_MAX, ceil_div
from inference_autoscaler.domain.horizontal.history import History
from inference_autoscaler.domain.horizontal.scaling_rules import DISABLED, DOWN_WINDOW_MS, MIN, PODS, Policy, Rules
from inference_autoscaler.domain.horizontal.spec import Horizontal

READY, UP_STABILIZED, DOWN_STABILIZED = "ReadyForNewScale", "ScaleUpStabilized", "ScaleDownStabilized"
IN_RANGE, TOO_FEW, TOO_MANY = "DesiredWithinRange", "TooFewReplicas", "TooManyReplicas"
UP_LIMIT, DOWN_LIMIT = "ScaleUpLimit", "ScaleDownLimit"
WORDS = {
    READY: "recommended size matches current size",
    UP_STABILIZED: "recent recommendations were lower than current one, applying the lowest recent recommendation",
    DOWN_STABILIZED: "recent recommendations were higher than current one, applying the highest recent recommendation",
    IN_RANGE: "the desired count is within the acceptable range",
    TOO_FEW: "the desired replica count is less than the minimum replica count",
    TOO_MANY: "the desired replica count is more than the maximum replica count",
    UP_LIMIT: "the desired replica count is increasing faster than the maximum scale rate",
    DOWN_LIMIT: "the desired replica count is decreasing faster than the maximum scale rate",
}
"""In Kubernetes' words, which people search for."""
_DOUBLED, _FIRST = 2, 4


@dataclass(slots=True)
class Limited:
    """The size after all limits. ``able`` is the reason of AbleToScale, ``limit`` that of ScalingLimited. Never changed."""

    replicas: int
    able: str
    limit: str

    @property
    def is_limited(self) -> bool:
        return self.limit != IN_RANGE


def limited(spec: Horizontal, history: History, current: int, wanted: int, now: int) -> Limited:
    """What becomes of a wish for ``wanted`` replicas where there are ``current``, by what ``history`` tells."""
    if not spec.behaves:
        steady = max([wanted, *history.since(now - DOWN_WINDOW_MS)])
        able = READY if steady == wanted else DOWN_STABILIZED
        ceiling = max(_DOUBLED * current, _FIRST)
        top = (spec.maximum, TOO_MANY) if spec.maximum <= ceiling else (ceiling, UP_LIMIT)
        replicas, limit = _clamped(steady, (spec.minimum, TOO_FEW), top)
        return Limited(replicas, able, limit)
    steady, able = _stabilized(spec, history, current, wanted, now)
    replicas, limit = _within_rates(spec, history, current, steady, now)
    return Limited(replicas, able, limit)


def _stabilized(spec: Horizontal, history: History, current: int, wanted: int, now: int) -> tuple[int, str]:
    up = min([wanted, *history.since(now - spec.up.window_ms + 1)])
    down = max([wanted, *history.since(now - spec.down.window_ms + 1)])
    steady = min(max(current, up), down)
    if steady == wanted:
        return steady, READY
    return steady, UP_STABILIZED if wanted >= current else DOWN_STABILIZED


def _within_rates(spec: Horizontal, history: History, current: int, wanted: int, now: int) -> tuple[int, str]:
    if wanted > current:
        ceiling = max(current, _up_limit(spec.up, history, current, now))
        top = (spec.maximum, TOO_MANY) if spec.maximum <= ceiling else (ceiling, UP_LIMIT)
        return _clamped(wanted, (0, TOO_FEW), top)
    if wanted < current:
        floor = min(current, _down_limit(spec.down, history, current, now))
        bottom = (spec.minimum, TOO_FEW) if spec.minimum >= floor else (floor, DOWN_LIMIT)
        return _clamped(wanted, bottom, (REPLICAS_MAX, TOO_MANY))
    return wanted, IN_RANGE


def _clamped(wanted: int, bottom: tuple[int, str], top: tuple[int, str]) -> tuple[int, str]:
    if wanted < bottom[0]:
        return bottom
    return top if wanted > top[0] else (wanted, IN_RANGE)


def _up_limit(rules: Rules, history: History, current: int, now: int) -> int:
    def reach(policy: Policy) -> int:
        start = _at_start(policy, history, current, now)
        if policy.kind == PODS:
            return start + policy.value
        return ceil_div(start * (100 + policy.value), 100)

    return _chosen(rules, current, reach, widest=max, narrowest=min)


def _down_limit(rules: Rules, history: History, current: int, now: int) -> int:
    def reach(policy: Policy) -> int:
        start = _at_start(policy, history, current, now)
        if policy.kind == PODS:
            return start - policy.value
        left = start * (100 - policy.value)
        return left // 100 if left >= 0 else ceil_div(left, 100)

    return _chosen(rules, current, reach, widest=min, narrowest=max)


def _at_start(policy: Policy, history: History, current: int, now: int) -> int:
    """How many replicas there were when the policy's period began."""
    since = now - policy.period_ms
    return current - history.added(since) + history.removed(since)


def _chosen(
    rules: Rules,
    current: int,
    reach: Callable[[Policy], int],
    widest: Callable[[list[int]], int],
    narrowest: Callable[[list[int]], int],
) -> int:
    if rules.select == DISABLED:
        return current
    reached = [reach(policy) for policy in rules.policies]
    return narrowest(reached) if rules.select == MIN else widest(reached)
