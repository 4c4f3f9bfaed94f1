"""How much a pod is thought to use before anybody has measured it.

The larger of what it asks for and what it is limited to, times a factor (percent), but no more than the limit; of a pod
that says nothing 250 milli-cores and 200 MiB. Pods that live on lent resources say it in those.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from gang_scheduler.domain.terms.load_policy import MEASURED, Percent
from gang_scheduler.domain.terms.pod_requests import effective_amounts
from kube.json_text import read_json
from resources import Amounts, QuantityError

FACTORS = "scheduling.koordinator.sh/load-estimated-scaling-factors"
_SILENT = (250, 200 << 20)
_NAMES = tuple(
    (
        measured,
        *(f"{domain}/{tier}-{measured}" for domain in ("kubernetes.io", "koordinator.sh") for tier in ("batch", "mid")),
    )
    for measured in MEASURED
)


class LoadTraits(NamedTuple):
    """What labels, annotations and owners of a pod say about its load."""

    prod: bool = True
    exempt: bool = False
    """Whether it goes to its node whatever is used there, as the pods of a DaemonSet do."""

    factors: Percent | None = None
    """Its own, instead of those of the policy."""


USUAL_LOAD = LoadTraits()


class Load(NamedTuple):
    """What a pod will use: cpu in milli-cores, memory in bytes."""

    cpu: int
    memory: int


def estimate(spec: Mapping[str, Any], factors: Percent) -> Load:
    """The estimate for a pod of ``spec``."""
    asked, limited = (_amounts(spec, part) for part in ("requests", "limits"))
    cpu, memory = (
        _one(names, asked, limited, factor, silent)
        for names, factor, silent in zip(_NAMES, factors, _SILENT, strict=True)
    )
    return Load(cpu, memory)


def own_factors(text: str | None) -> Percent | None:
    """The factors that a pod's annotation names; None without one, or when it cannot be read."""
    if text is None:
        return None
    try:
        read = read_json(text)
        return (int(read["cpu"]), int(read["memory"])) if {"cpu", "memory"} <= read.keys() else None
    except (ValueError, TypeError, AttributeError):
        return None


def _one(names: Iterable[str], asked: Amounts, limited: Amounts, factor: int, silent: int) -> int:
    # Lent cpu counts whole milli-cores, so all the names of one resource have the same unit.
    for name in names:
        limit = limited.get(name, 0)
        most = max(asked.get(name, 0), limit)
        if most:
            used = (2 * most * factor + 100) // 200
            return min(used, limit) if limit else used
    return silent


def _amounts(spec: Mapping[str, Any], part: str) -> Amounts:
    try:
        return effective_amounts(spec, part)
    except (QuantityError, AttributeError, TypeError):
        return {}
