"""What a NodeMetric says of a node, as far as lending rests on it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kube import Key, Object, parse_time
from kube.colocation import LENT_BANDS
from resources import QuantityError, parse_amounts
from slo_controller.domain.lending.terms import NOTHING, Use

_OF_BATCH = (*LENT_BANDS, *(f"koord-{band}" for band in LENT_BANDS))
"""What the bands of batch work are called in a NodeMetric."""


@dataclass(frozen=True, slots=True)
class Measured:
    """``at`` is when it was taken, in ms. ``system`` is what neither pods nor known programs use.

    ``applications`` are programs outside of pods that do no batch work.
    """

    at: int
    node: Use
    system: Use
    pods: Mapping[Key, Use] = field(default_factory=dict)
    applications: Use = NOTHING
    containers: Mapping[Key, Mapping[str, Use]] = field(default_factory=dict)
    """By pod, where whoever measures tells containers apart."""
    reclaimable: Use | None = None
    """What prod pods ask for and are predicted not to use, where whoever measures predicts it."""


def measured(metric: Object | None) -> Measured | None:
    """What ``metric`` says; None where nothing was measured yet, or not in a way that can be read."""
    if metric is None:
        return None
    status = metric.status
    try:
        told = status.get("nodeMetric") or {}
        node, pods = _use(told.get("nodeUsage")), _pods(status.get("podsMetric") or ())
        programs = [(_use(one.get("usage")), one.get("priority")) for one in status.get("hostApplicationMetric") or ()]
        rest = node.over(sum(pods.values(), sum((used for used, _ in programs), NOTHING)))
        return Measured(
            parse_time(str(status["updateTime"])),
            node,
            _use(told["systemUsage"]) if "systemUsage" in told else rest,
            pods,
            sum((used for used, priority in programs if priority not in _OF_BATCH), NOTHING),
            {pod: used for pod, used in map(_containers, status.get("podsMetric") or ()) if used},
            _use((status.get("prodReclaimableMetric") or {}).get("resource"))
            if "prodReclaimableMetric" in status
            else None,
        )
    except (AttributeError, KeyError, TypeError, ValueError, QuantityError):
        return None


def _pods(listed: Iterable[Any]) -> dict[Key, Use]:
    return {_pod(one): _use(one.get("podUsage")) for one in listed}


def _containers(one: Any) -> tuple[Key, dict[str, Use]]:
    return _pod(one), {str(part["name"]): _use(part.get("usage")) for part in one.get("containers") or ()}


def _pod(one: Any) -> Key:
    return Key("Pod", str(one.get("namespace") or "default"), str(one["name"]))


def _use(told: Any) -> Use:
    amounts = parse_amounts((told or {}).get("resources"))
    return Use(max(amounts.get("cpu", 0), 0), max(amounts.get("memory", 0), 0))
