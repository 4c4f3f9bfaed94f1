"""How one revision is to be scaled: Knative's annotations over the configuration of the cluster."""

from collections.abc import Mapping
from dataclasses import dataclass

from inference_autoscaler.domain.knative.configuration import KnativeConfiguration, fraction, share
from kube import parse_duration
from resources import parse_milli

GROUP = "autoscaling.knative.dev/"
CONCURRENCY, RPS = "concurrency", "rps"
_LEAST_TARGET_MICRO = 10_000


@dataclass(frozen=True, slots=True)
class Scaling:
    """``total_milli`` is what a pod can bear, ``target_micro`` what it is aimed at, in millionths. ``maximum`` 0 is no limit."""

    metric: str
    total_milli: int
    target_micro: int
    minimum: int
    maximum: int
    initial: int
    activation: int
    window_ms: int
    panic_window_ms: int
    panic_threshold_milli: int
    up_rate_milli: int
    down_rate_milli: int
    down_delay_ms: int
    to_zero: bool
    idle_ms: int
    """How long a revision that nobody needs keeps its last pod: the longer of grace and retention."""

    burst_milli: int


def read(
    annotations: Mapping[str, str], container_concurrency: int | None, configuration: KnativeConfiguration
) -> Scaling:
    """What holds for a revision with these ``annotations``. Raises ValueError where one makes no sense."""

    def said(name: str) -> str | None:
        return annotations.get(GROUP + name)

    metric = said("metric") or CONCURRENCY
    total = configuration.rps_milli if metric == RPS else configuration.concurrency_milli
    hard = (container_concurrency or 0) * 1000 if metric == CONCURRENCY else 0
    if (target := said("target")) is not None:
        total = min(parse_milli(target), hard) if hard else parse_milli(target)
    elif hard:
        total = hard
    percent = said("target-utilization-percentage")
    utilization = configuration.utilization_milli if percent is None else fraction(percent)
    window = _time(said("window"), configuration.window_ms)
    panic = _share(said("panic-window-percentage"), configuration.panic_window_milli)
    retention = _time(said("scale-to-zero-pod-retention-period"), configuration.retention_ms)
    burst = said("target-burst-capacity")
    return Scaling(
        metric,
        total,
        max(_LEAST_TARGET_MICRO, total * utilization),
        _count(said("min-scale"), configuration.minimum),
        _count(said("max-scale"), configuration.maximum),
        _count(said("initial-scale"), configuration.initial),
        _count(said("activation-scale"), 1),
        window,
        max(1000, window * panic // 1000),
        _share(said("panic-threshold-percentage"), configuration.panic_threshold_milli),
        configuration.up_rate_milli,
        configuration.down_rate_milli,
        _time(said("scale-down-delay"), configuration.down_delay_ms),
        configuration.to_zero,
        max(configuration.grace_ms, retention),
        configuration.burst_milli if burst is None else parse_milli(burst),
    )


def _count(text: str | None, default: int) -> int:
    return default if text is None else int(text)


def _time(text: str | None, default: int) -> int:
    return default if text is None else parse_duration(text)


def _share(text: str | None, default: int) -> int:
    return default if text is None else share(text)
