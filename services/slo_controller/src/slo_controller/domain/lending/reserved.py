"""What of a node is kept for the system: by the kubelet, or by the node's annotation."""

from dataclasses import dataclass
from typing import Any

from kube import Object
from kube.amplification import RAW
from kube.cpu_lists import parse_cpus
from kube.json_text import read_json
from resources import Amounts, QuantityError, parse_amounts
from slo_controller.domain.lending.terms import Use
from slo_controller.domain.names import RESERVATION


@dataclass(frozen=True, slots=True)
class Reserved:
    """``capacity`` of the node, and what is ``kept`` of it. ``complaint`` says what of the annotations makes no sense."""

    capacity: Use
    kept: Use
    complaint: str = ""


def reserved(node: Object) -> Reserved:
    """What is kept: what the kubelet does not give to pods, or the annotation's amount where that is more.

    A list of CPUs counts in the place of the annotation's amount of cpu. Where cpu is amplified the kubelet's own figure counts.
    """
    capacity = _sound(node.status.get("capacity") or node.status.get("allocatable"))
    allocatable = _sound(node.status.get("allocatable"))
    try:
        raw = parse_amounts(_mapping(node.annotations.get(RAW)))
        annotated, complaint = _annotated(node.annotations.get(RESERVATION)), ""
    except (ValueError, QuantityError) as error:
        raw, annotated, complaint = {}, Use(), f"an annotation does not count: {error}"
    given = _use({**allocatable, **raw})
    return Reserved(_use(capacity), _use(capacity).over(given).at_least(annotated), complaint)


def _annotated(text: str | None) -> Use:
    told = _mapping(text)
    amounts = parse_amounts(told.get("resources") or {})
    if cpus := parse_cpus(str(told.get("reservedCPUs") or "")):
        amounts["cpu"] = 1000 * len(cpus)
    return _use(amounts)


def _mapping(text: str | None) -> dict[str, Any]:
    told = read_json(text or "{}")
    if not isinstance(told, dict) or not isinstance(told.get("resources") or {}, dict):
        raise ValueError(f"{text!r} is no mapping")
    return told


def _use(amounts: Amounts) -> Use:
    return Use(max(amounts.get("cpu", 0), 0), max(amounts.get("memory", 0), 0))


def _sound(listed: Any) -> Amounts:
    try:
        return parse_amounts(listed)
    except QuantityError:
        return {}
