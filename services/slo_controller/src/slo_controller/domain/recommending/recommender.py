"""Recommendations: for a workload that an object names, what each of its containers should ask for."""

from collections.abc import Iterator
from dataclasses import dataclass

from kube import Decision, Manifest, Mutation, Object, Store, Verb, kind_id, rfc3339
from kube.selectors import matches
from resources import Amounts, QuantityError, format_amounts, parse_amounts
from slo_controller.domain.lending.terms import COUNTED, Use
from slo_controller.domain.names import POD
from slo_controller.domain.prediction.container_use import ContainerUse
from slo_controller.domain.prediction.past_use import PastUse
from slo_controller.domain.prediction.workloads import Workload, workload_of
from slo_controller.domain.recommending.estimate import SURE_MILLI, Estimate, estimate

COMPUTED = "RecommendationComputed"
CONDITION = "RecommendationProvided"
SMALL_PERCENT = 10
"""A bound that moves by less is not written for that."""


@dataclass(frozen=True, slots=True)
class Recommender:
    """Over the facts in ``store`` and what is remembered of past use."""

    store: Store

    def decide(self, item: Object, past: PastUse, now: int) -> Decision | None:
        """What is to be written on the Recommendation ``item``: nothing where it says all but small changes of bounds."""
        workloads = self._workloads(item)
        estimates = _estimates(workloads, past)
        told = [_told(name, one) for name, one in sorted(estimates.items())]
        words, reason = _words(item, workloads, estimates)
        if not _is_news(item, told, reason):
            return None
        condition = {
            "type": CONDITION,
            "status": "True" if told else "False",
            "reason": reason,
            "message": words,
            "lastTransitionTime": rfc3339(now),
        }
        status = {"podStatus": {"containerStatuses": told}, "updateTime": rfc3339(now), "conditions": [condition]}
        mutation = Mutation(Verb.STATUS, item.key, item.uid, patch=status)
        return Decision(COMPUTED, item.key, item.uid, reason, words, (mutation,))

    def _workloads(self, item: Object) -> list[Workload]:
        """Whose pods are meant, sorted."""
        target = item.spec.get("target") or {}
        named = target.get("workload")
        if named:
            kind = kind_id(str(named.get("apiVersion") or ""), str(named.get("kind") or ""))
            return [Workload(item.namespace, kind, str(named.get("name") or ""))]
        pods = self.store.in_namespace(POD, item.namespace)
        selector = target.get("podSelector")
        return sorted({workload_of(pod, self.store) for pod in pods if matches(selector, pod.labels)})


def is_by_selector(item: Object) -> bool:
    """Whether a Recommendation is about whatever pods have some labels."""
    return not (item.spec.get("target") or {}).get("workload")


def _estimates(workloads: list[Workload], past: PastUse) -> dict[str, Estimate]:
    parts: dict[str, list[ContainerUse]] = {}
    for workload in workloads:
        for name, one in past.containers.get(workload, {}).items():
            parts.setdefault(name, []).append(one)
    found = {name: estimate(known, len(parts)) for name, known in parts.items()}
    return {name: one for name, one in found.items() if one is not None}


def _told(name: str, one: Estimate) -> Manifest:
    return {
        "containerName": name,
        "resources": _amounts(one.target),
        "lowerBound": _amounts(one.lower),
        "upperBound": _amounts(one.upper),
    }


def _amounts(use: Use) -> dict[str, str]:
    return format_amounts({name: use.of(name) for name in COUNTED})


def _words(item: Object, workloads: list[Workload], estimates: dict[str, Estimate]) -> tuple[str, str]:
    """What is said of it to people, and the reason."""
    if not estimates:
        names = ", ".join(f"{one.kind.partition('.')[0]}/{one.name}" for one in workloads) or "what it selects"
        return f"nothing was measured yet of the pods of {names}", "NothingMeasured"
    sure = min(one.confidence_milli for one in estimates.values())
    days = f"{sure // 1000}.{sure % 1000 // 100}"
    words = "; ".join(f"{name}: {_asked(one.target)}" for name, one in sorted(estimates.items()))
    return f"{words} (known for {days} days)", "LowConfidence" if sure < SURE_MILLI else "Confident"


def _asked(use: Use) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in _amounts(use).items())


def _is_news(item: Object, told: list[Manifest], reason: str) -> bool:
    written = {str(one.get("containerName")): one for one in _written(item)}
    condition: Manifest = next(iter(item.status.get("conditions") or ()), {})
    if condition.get("reason") != reason or written.keys() != {one["containerName"] for one in told}:
        return True
    return any(_differs(one, written[one["containerName"]]) for one in told)


def _written(item: Object) -> Iterator[Manifest]:
    yield from (item.status.get("podStatus") or {}).get("containerStatuses") or ()


def _differs(one: Manifest, other: Manifest) -> bool:
    if _read(one["resources"]) != _read(other.get("resources")):
        return True
    bounds = ((_read(one[name]), _read(other.get(name))) for name in ("lowerBound", "upperBound"))
    return any(
        abs(new.get(name, 0) - old.get(name, 0)) * 100 > old.get(name, 0) * SMALL_PERCENT
        for new, old in bounds
        for name in COUNTED
    )


def _read(listed: Manifest | None) -> Amounts:
    try:
        return parse_amounts(listed)
    except QuantityError:
        return {}
