"""Whether a strategy makes sense: fields of the right type, numbers in their range, words that there are."""

from typing import Any

from kube import Manifest

PERCENT = (0, 100)
RATIOS = ("baseRatio", "turboEnabledRatio", "hyperThreadEnabledRatio", "hyperThreadTurboEnabledRatio")
RATIO = (1, 5)
"""A core is never counted for less than it is, nor for more than five; no amount is given out more than five times."""
RANGES: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("cpuReclaimThresholdPercent", "memoryReclaimThresholdPercent"), (0, 10_000)),
    "cpuBurstPercent": (0, 10_000),
    "cfsQuotaBurstPercent": (100, 100_000),
    "cfsQuotaBurstPeriodSeconds": (-1, 10**9),
    "resourceDiffThreshold": (0.0, 1.0),
    "wmarkRatio": PERCENT,
    "wmarkScalePermill": (1, 1000),
    "wmarkMinAdj": (-25, 50),
    "groupIdentity": (-1, 2),
    **dict.fromkeys(("degradeTimeMinutes", "updateTimeThresholdSeconds"), (1, 10**9)),
    **dict.fromkeys(("metricAggregateDurationSeconds", "metricReportIntervalSeconds"), (1, 10**9)),
}
WORDS: dict[str, tuple[str, ...]] = {
    "cpuSuppressPolicy": ("cpuset", "cfsQuota", "weight"),
    "cpuEvictPolicy": ("evictByRealLimit", "evictByAllocatable"),
    "policy": ("none", "cpuBurstOnly", "cfsQuotaBurstOnly", "auto"),
    "cpuCalculatePolicy": ("usage", "maxUsageRequest"),
    "memoryCalculatePolicy": ("usage", "request", "maxUsageRequest"),
    "midReclaimMode": ("static", "dynamic"),
}
LOWER = tuple(
    (f"{name}Lower{end}", f"{name}{upper}{end}")
    for name, upper, end in (
        ("memoryEvict", "Threshold", "Percent"),
        ("cpuEvict", "Threshold", "Percent"),
        ("memoryAllocatableEvict", "Threshold", "Percent"),
        ("cpuAllocatableEvict", "Threshold", "Percent"),
        ("cpuEvictBESatisfaction", "Upper", "Percent"),
    )
)
"""Fields of which the first has to be below the second."""


def check(given: Any, form: Manifest, path: str) -> None:
    """Look at all that is said in ``given``; ``form`` has a value of the right type for each field that has a default.

    Raises ValueError naming the field, what it is, and what it should be.
    """
    if not isinstance(given, dict):
        raise ValueError(f"{path} is {_shown(given)}; it has to be a mapping")
    for name, value in given.items():
        if value is not None:
            _check_field(f"{path}.{name}", str(name), value, form.get(name))
    for low, high in LOWER:
        if isinstance(given.get(low), int) and isinstance(given.get(high), int) and given[low] >= given[high]:
            raise ValueError(f"{path}.{low} is {given[low]}; it has to be below {high}, which is {given[high]}")


def _check_field(path: str, name: str, value: Any, usual: Any) -> None:
    if isinstance(usual, list):
        _demand(
            isinstance(value, list) and all(isinstance(one, dict) for one in value), path, value, "a list of mappings"
        )
        return
    if isinstance(usual, dict) or isinstance(value, dict):
        check(value, usual if isinstance(usual, dict) else {}, path)
        return
    if name in (*RATIOS, "defaultRatio") or ".resourceAmplificationRatio." in path:
        number = isinstance(value, int | float) and not isinstance(value, bool) and RATIO[0] <= value <= RATIO[1]
        _demand(number, path, value, f"a number from {RATIO[0]} to {RATIO[1]}")
        return
    if name in WORDS and isinstance(value, str) and value not in WORDS[name]:
        raise ValueError(f"{path} is {value!r}; it has to be one of {', '.join(WORDS[name])}")
    if isinstance(usual, bool):
        _demand(isinstance(value, bool), path, value, "true or false")
    elif isinstance(usual, str):
        _demand(isinstance(value, str | int) and not isinstance(value, bool), path, value, "a text")
    elif isinstance(usual, int | float) or name in RANGES or name.endswith("Percent"):
        low, high = RANGES.get(name, PERCENT if name.endswith("Percent") else (-(10**9), 10**9))
        whole = not isinstance(low, float)
        number = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
        _demand(number, path, value, "a whole number" if whole else "a number")
        _demand(low <= value <= high, path, value, f"from {low} to {high}")


def _demand(holds: bool, path: str, value: Any, wanted: str) -> None:
    if not holds:
        raise ValueError(f"{path} is {_shown(value)}; it has to be {wanted}")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
