"""The status of a HorizontalPodAutoscaler: what was measured and decided, where it differs from what stands there."""

from collections.abc import Iterable, Mapping

from inference_autoscaler.domain.horizontal.proposal import Proposal
from inference_autoscaler.domain.horizontal.spec import FIELDS, Metric
from inference_autoscaler.domain.horizontal.verdict import ZEROED, Verdict
from kube import Manifest, Object, rfc3339
from resources import format_quantity


def status_patch(item: Object, verdict: Verdict, counted: int, current: int, now: int) -> Manifest:
    """What of the status of ``item`` is to be changed; empty where nothing is.

    ``counted`` are the replicas of the target by its status, ``current`` those that were wanted before this look.
    """
    old = item.status
    parts: Manifest = {
        "observedGeneration": item.metadata.get("generation", 1),
        "currentReplicas": counted,
        "desiredReplicas": verdict.replicas,
    }
    if verdict.measured:
        parts["currentMetrics"] = [_measured(metric, proposal) for metric, proposal in verdict.measured]
    if verdict.replicas != current:
        parts["lastScaleTime"] = rfc3339(now)
    patch = {name: value for name, value in parts.items() if old.get(name) != value}
    known = _by_type(old)
    if conditions := _changed(known, [*verdict.told(), *_zeroed(known, verdict, current)], now):
        patch["conditions"] = conditions
    return patch


def changed_conditions(status: Manifest, told: Iterable[Manifest], now: int) -> list[Manifest]:
    """Those of the conditions ``told`` that ``status`` does not have as they are, with the time of their last turn."""
    return _changed(_by_type(status), told, now)


def _changed(known: Mapping[str, Manifest], told: Iterable[Manifest], now: int) -> list[Manifest]:
    found = []
    for condition in told:
        old = known.get(condition["type"], {})
        if not condition.items() <= old.items():
            turned = old.get("lastTransitionTime") if old.get("status") == condition["status"] else None
            found.append({**condition, "lastTransitionTime": turned or rfc3339(now)})
    return found


def is_zeroed(status: Manifest) -> bool:
    """Whether the autoscaler itself brought its target to zero."""
    return _is_true(_by_type(status), ZEROED)


def _by_type(status: Manifest) -> dict[str, Manifest]:
    return {one.get("type"): one for one in status.get("conditions") or ()}


def _is_true(known: Mapping[str, Manifest], name: str) -> bool:
    return name in known and known[name].get("status") == "True"


def _zeroed(known: Mapping[str, Manifest], verdict: Verdict, current: int) -> list[Manifest]:
    """The condition that tells its own zero from a user's, when it turns."""
    if verdict.replicas == 0 and current > 0:
        message = "the HPA controller has scaled the target to zero and watches its metrics"
        return [{"type": ZEROED, "status": "True", "reason": "ScaledToZero", "message": message}]
    if verdict.replicas > 0 and _is_true(known, ZEROED):
        message = "the target has replicas"
        return [{"type": ZEROED, "status": "False", "reason": "NotScaledToZero", "message": message}]
    return []


def _measured(metric: Metric, proposal: Proposal) -> Manifest:
    current: Manifest = {}
    if proposal.utilization is not None:
        current["averageUtilization"] = proposal.utilization
    if proposal.average_milli is not None:
        current["averageValue"] = format_quantity(proposal.average_milli, milli=True)
    if proposal.value_milli is not None:
        current["value"] = format_quantity(proposal.value_milli, milli=True)
    kind = metric.type
    return {"type": kind, FIELDS[kind]: {**metric.named, "current": current}}
