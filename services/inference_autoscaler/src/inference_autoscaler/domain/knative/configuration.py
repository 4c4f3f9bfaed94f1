"""What an operator says in Knative's ConfigMap config-autoscaler, with its defaults."""

from collections.abc import Callable
from dataclasses import dataclass

from kube import Manifest, parse_duration
from resources import QuantityError, parse_milli


@dataclass(frozen=True, slots=True)
class KnativeConfiguration:
    """Rates and shares are in thousandths, times in milliseconds. ``maximum`` 0 is no limit."""

    utilization_milli: int = 700
    concurrency_milli: int = 100_000
    rps_milli: int = 200_000
    burst_milli: int = 211_000
    window_ms: int = 60_000
    panic_window_milli: int = 100
    panic_threshold_milli: int = 2_000
    up_rate_milli: int = 1_000_000
    down_rate_milli: int = 2_000
    to_zero: bool = True
    grace_ms: int = 30_000
    retention_ms: int = 0
    initial: int = 1
    minimum: int = 0
    maximum: int = 0
    down_delay_ms: int = 0

    @classmethod
    def of(cls, given: Manifest) -> "KnativeConfiguration":
        """Keys of config-autoscaler. Raises ValueError for one that there is not, or whose value makes no sense."""
        found: Manifest = {}
        for key, value in given.items():
            if key not in _KEYS:
                raise ValueError(f"config-autoscaler: {key} is none of the keys that are honoured: {', '.join(_KEYS)}")
            name, read = _KEYS[key]
            try:
                found[name] = read(str(value))
            except (QuantityError, ValueError) as error:
                raise ValueError(f"config-autoscaler: {key}: {error}") from None
        return cls(**found)


def truth(text: str) -> bool:
    """Raises ValueError for what is neither true nor false."""
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false")
    return text.lower() == "true"


def share(text: str) -> int:
    """A percentage in thousandths."""
    return parse_milli(text) // 100


def fraction(text: str) -> int:
    """A percentage in thousandths; a number of at most 1 is taken for the fraction that it says, as Knative does."""
    return parse_milli(text) if parse_milli(text) <= 1_000 else share(text)


_KEYS: dict[str, tuple[str, Callable[[str], int]]] = {
    "container-concurrency-target-percentage": ("utilization_milli", fraction),
    "container-concurrency-target-default": ("concurrency_milli", parse_milli),
    "requests-per-second-target-default": ("rps_milli", parse_milli),
    "target-burst-capacity": ("burst_milli", parse_milli),
    "stable-window": ("window_ms", parse_duration),
    "panic-window-percentage": ("panic_window_milli", share),
    "panic-threshold-percentage": ("panic_threshold_milli", share),
    "max-scale-up-rate": ("up_rate_milli", parse_milli),
    "max-scale-down-rate": ("down_rate_milli", parse_milli),
    "enable-scale-to-zero": ("to_zero", truth),
    "scale-to-zero-grace-period": ("grace_ms", parse_duration),
    "scale-to-zero-pod-retention-period": ("retention_ms", parse_duration),
    "initial-scale": ("initial", int),
    "min-scale": ("minimum", int),
    "max-scale": ("maximum", int),
    "scale-down-delay": ("down_delay_ms", parse_duration),
}
