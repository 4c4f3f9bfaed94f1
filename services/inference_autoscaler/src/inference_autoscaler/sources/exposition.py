"""What a model server, or any pod, tells in Prometheus' text format, and what autoscalers can go by of it.

Gauges are told as they are. Of a counter its rate is told, per second since the look before. Some metrics are made of
several: how busy Triton is, how long its requests wait, and how many one busy instance serves.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from prometheus_client.parser import text_string_to_metric_families

from inference_autoscaler.sources.answers import SourceFailed, milli

Labels = tuple[tuple[str, str], ...]
_MOST_SERIES = 20_000
_COUNTING = ("histogram", "summary")


@dataclass(frozen=True, slots=True)
class Look:
    """What one pod told at ``at_ms``: sums over its series by name, and which of them are counters."""

    at_ms: int
    sums: Mapping[str, float]
    counters: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Growth:
    """What counters grew by between two looks, over ``seconds``."""

    by: Callable[[str], float]
    seconds: float


def _busy(growth: Growth) -> float:
    """Instances of models that were executing, on the average: executions of a batch count once."""
    computing = sum(growth.by(f"nv_inference_compute_{part}_duration_us") for part in ("input", "infer", "output"))
    count = growth.by("nv_inference_count")
    mean_batch = count / executed if (executed := growth.by("nv_inference_exec_count")) else 1.0
    return computing / 1e6 / growth.seconds / max(mean_batch, 1.0)


def _queue_share(growth: Growth) -> float:
    """Of the time of requests that which they waited for an instance."""
    return growth.by("nv_inference_queue_duration_us") / growth.by("nv_inference_request_duration_us")


def _service_rate(growth: Growth) -> float:
    """Inferences a second that one busy instance serves."""
    return growth.by("nv_inference_count") / growth.seconds / _busy(growth)


_COUNTED = ("count", "exec_count", "queue_duration_us", "request_duration_us")
_COMPUTED = tuple(f"compute_{part}_duration_us" for part in ("input", "infer", "output"))
_TRITON = tuple(f"nv_inference_{name}" for name in (*_COUNTED, *_COMPUTED))
MADE: Mapping[str, Callable[[Growth], float]] = {
    "nv_inference_busy_instances": _busy,
    "nv_inference_queue_share": _queue_share,
    "nv_inference_service_rate": _service_rate,
}
"""Metrics that are made of Triton's counters. Where nothing was served between two looks a share and a rate are not known."""

_DUTY, _UTILIZATION = "duty_cycle_current", "nv_gpu_utilization"
"""How busy the GPUs are, in percent; Triton tells each one's part of 1."""


def names_of(metric: str) -> tuple[str, ...]:
    """The series that ``metric`` is made of."""
    if metric in MADE:
        return _TRITON
    return (_UTILIZATION,) if metric == _DUTY else (metric,)


def look(content: bytes, names: Iterable[str], labels: Labels, at_ms: int) -> Look:
    """What ``content`` tells of ``names``, of series with these labels. Raises SourceFailed where it is no such text."""
    wanted = frozenset(names)
    sums: dict[str, float] = {}
    counters: set[str] = set()
    series = 0
    try:
        for family in text_string_to_metric_families(_only(content.decode(), wanted)):
            for sample in family.samples:
                # The parser calls counters as OpenMetrics does, whatever their servers call them.
                name = sample.name if sample.name in wanted else sample.name.removesuffix("_total")
                if name not in wanted or not dict(labels).items() <= sample.labels.items():
                    continue
                series += 1
                sums[name] = sums.get(name, 0.0) + sample.value
                if family.type == "counter" or (family.type in _COUNTING and name != family.name):
                    counters.add(name)
                if name == _UTILIZATION:
                    sums[_DUTY] = sums.get(_DUTY, 0.0) + 1.0
    except (ValueError, KeyError, IndexError, AttributeError) as error:
        raise SourceFailed(f"it tells no metrics in Prometheus' text format: {str(error)[:120]}") from None
    if series > _MOST_SERIES:
        raise SourceFailed(
            f"it tells {series} series of {', '.join(sorted(wanted))}; more than {_MOST_SERIES} are not read"
        )
    return Look(at_ms, sums, frozenset(counters))


def value(metric: str, before: Look | None, now: Look) -> int | None:
    """``metric`` in thousandths; None where it takes a look more, or nothing happened. Raises SourceFailed."""
    if metric in MADE:
        return _made(MADE[metric], before, now)
    if metric == _DUTY:
        cards = now.sums.get(_DUTY, 0.0)
        if not cards:
            raise SourceFailed(f"it tells no {_UTILIZATION}")
        return _milli(100.0 * now.sums[_UTILIZATION] / cards)
    if metric not in now.sums:
        raise SourceFailed(f"it tells no {metric}")
    if metric not in now.counters:
        return _milli(now.sums[metric])
    growth = _growth(before, now)
    return None if growth is None else _milli(growth.by(metric) / growth.seconds)


def _made(make: Callable[[Growth], float], before: Look | None, now: Look) -> int | None:
    if missing := [name for name in _TRITON if name not in now.sums]:
        raise SourceFailed(f"it tells no {missing[0]}")
    growth = _growth(before, now)
    try:
        return None if growth is None else _milli(make(growth))
    except ZeroDivisionError:
        return None


def _growth(before: Look | None, now: Look) -> Growth | None:
    """None at the first look, and at the first one after the pod began anew: its counters are smaller then."""
    if before is None or now.at_ms <= before.at_ms:
        return None
    if any(now.sums.get(name, 0.0) < past for name, past in before.sums.items() if name in before.counters):
        return None
    return Growth(lambda name: now.sums.get(name, 0.0) - before.sums.get(name, 0.0), (now.at_ms - before.at_ms) / 1000)


def _milli(number: float) -> int:
    return milli(str(Decimal(repr(number))) if number == number else "NaN")


def _only(text: str, names: frozenset[str]) -> str:
    """The lines about ``names``: the rest of a long text is not parsed."""
    families = names | {
        name.removesuffix(suffix) for name in names for suffix in ("_total", "_sum", "_count", "_bucket")
    }
    return "\n".join([*(line for line in text.splitlines() if _name(line) in families), ""])


def _name(line: str) -> str:
    """Of which series or family a line is."""
    if line.startswith("#"):
        words = line.split(None, 3)
        return words[2] if len(words) > 2 else ""
    return (line.partition("{")[0].split() or [""])[0]
