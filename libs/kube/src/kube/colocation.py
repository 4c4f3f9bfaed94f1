"""QoS classes and priority bands of Koordinator: what a pod is to those that it shares a node with.

Source: Koordinator's ``apis/extension/{qos,priority}.go``: labels before numbers, and both before Kubernetes' own QoS class.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kube.keys import Manifest
from resources import Amounts, QuantityError, parse_amounts

QOS_LABEL = "koordinator.sh/qosClass"
CLASS_LABEL = "koordinator.sh/priority-class"

QOS_CLASSES = ("LSE", "LSR", "LS", "BE", "SYSTEM")
BANDS = {"prod": (9000, 9999), "mid": (7000, 7999), "batch": (5000, 5999), "free": (3000, 3999)}
NO_BAND = "none"
LENT_BANDS = ("batch", "free")
"""Bands of pods that live on what others leave idle, and are taken off nothing."""

GUARANTEED, BURSTABLE, BEST_EFFORT = "Guaranteed", "Burstable", "BestEffort"
_COUNTED = ("cpu", "memory")
_QOS_OF = {GUARANTEED: "LSR", BURSTABLE: "LS", BEST_EFFORT: "BE"}


def band_of(labels: Mapping[str, str], spec: Mapping[str, Any]) -> str:
    """The priority band of a pod: what its label says, else where its number lies, else ``none``."""
    named = labels.get(CLASS_LABEL, "").removeprefix("koord-")
    if named in BANDS:
        return named
    number = spec.get("priority") or 0
    for band, (low, high) in BANDS.items():
        if low <= number <= high:
            return band
    return NO_BAND


def band_with_default(labels: Mapping[str, str], spec: Manifest) -> str:
    """The band of a pod, by its QoS class where neither label nor number names one: BE is batch, all else prod."""
    band = band_of(labels, spec)
    if band != NO_BAND:
        return band
    return "batch" if qos_of(labels, spec) == "BE" else "prod"


def qos_of(labels: Mapping[str, str], spec: Manifest) -> str:
    """The QoS class of a pod: what its label says, else what Kubernetes' own class means."""
    named = labels.get(QOS_LABEL, "")
    return named if named in QOS_CLASSES else _QOS_OF[kubernetes_qos(spec)]


def kubernetes_qos(spec: Manifest) -> str:
    """Guaranteed, Burstable or BestEffort, by cpu and memory of all containers, as the kubelet says it."""
    asked = list(_asked(spec))
    if not any(requests or limits for requests, limits in asked):
        return BEST_EFFORT
    is_fixed = all(set(limits) == set(_COUNTED) and {**limits, **requests} == limits for requests, limits in asked)
    return GUARANTEED if is_fixed else BURSTABLE


def _asked(spec: Manifest) -> Iterator[tuple[Amounts, Amounts]]:
    """Requests and limits of each container, cpu and memory alone, nothing of zero."""
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources = container.get("resources") or {}
        yield _counted(resources.get("requests")), _counted(resources.get("limits"))


def _counted(listed: Manifest | None) -> Amounts:
    try:
        amounts = parse_amounts({name: listed[name] for name in _COUNTED if name in listed} if listed else None)
    except QuantityError:
        return {}
    return {name: amount for name, amount in amounts.items() if amount}
