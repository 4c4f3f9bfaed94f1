"""How fast a HorizontalPodAutoscaler may go: its ``behavior``, read with Kubernetes' defaults."""

from dataclasses import dataclass

from kube import Manifest
from resources import parse_nano

TOLERANCE_NANO = 100_000_000
DOWN_WINDOW_MS = 300_000
MAX, MIN, DISABLED = "Max", "Min", "Disabled"
PODS, PERCENT = "Pods", "Percent"


@dataclass(frozen=True, slots=True)
class Policy:
    """At most ``value`` pods, or percent, in ``period_ms``."""

    kind: str
    value: int
    period_ms: int


@dataclass(frozen=True, slots=True)
class Rules:
    """One direction: which of the policies counts, how long answers are looked back at, how much is too little to act."""

    select: str
    policies: tuple[Policy, ...]
    window_ms: int
    tolerance_nano: int = TOLERANCE_NANO


UP = Rules(MAX, (Policy(PODS, 4, 15_000), Policy(PERCENT, 100, 15_000)), 0)
DOWN = Rules(MAX, (Policy(PERCENT, 100, 15_000),), DOWN_WINDOW_MS)


def rules(given: Manifest | None, default: Rules) -> Rules:
    """What ``given``, a half of ``behavior``, says; what it leaves out is as in ``default``."""
    if not given:
        return default
    window, tolerance = given.get("stabilizationWindowSeconds"), given.get("tolerance")
    return Rules(
        str(given.get("selectPolicy") or default.select),
        tuple(_policy(one) for one in given.get("policies") or ()) or default.policies,
        default.window_ms if window is None else int(window) * 1000,
        default.tolerance_nano if tolerance is None else parse_nano(tolerance),
    )


def _policy(given: Manifest) -> Policy:
    return Policy(str(given.get("type")), int(given["value"]), int(given["periodSeconds"]) * 1000)
