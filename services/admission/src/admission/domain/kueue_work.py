"""Kueue's Workloads, the priorities that they name, and the checks that have to agree to them."""

from collections.abc import Iterable, Mapping
from typing import Any

from admission.domain import names
from admission.domain.changes import fixed
from admission.domain.containers import check_resources
from admission.domain.errors import FieldError
from admission.domain.pod_placement import check_placement
from admission.domain.pod_template import POD_TEMPLATE
from admission.domain.quantities import check_amounts
from admission.domain.shapes import (
    ANYTHING,
    LARGEST,
    MAPPING,
    TEXT,
    TRUTH,
    WHOLE,
    Idle,
    ListOf,
    closed,
    fields,
    pod_count,
    within,
)
from admission.domain.world import Review
from kube import Manifest

CONDITIONS = ListOf(fields(type=TEXT, status=TEXT, reason=TEXT, message=TEXT, lastTransitionTime=TEXT))
WORKLOAD_SPEC = closed(
    queueName=TEXT,
    active=TRUTH,
    priority=WHOLE,
    priorityClassName=TEXT,
    priorityClassRef=closed(group=TEXT, kind=TEXT, name=TEXT),
    maximumExecutionTimeSeconds=WHOLE,
    preemptionGates=Idle(ANYTHING),
    podSets=ListOf(
        closed(name=TEXT, count=WHOLE, minCount=WHOLE, template=POD_TEMPLATE, topologyRequest=Idle(ANYTHING))
    ),
)
WORKLOAD_STATUS = fields(
    conditions=CONDITIONS,
    admission=MAPPING,
    requeueState=fields(count=WHOLE, requeueAt=TEXT),
    reclaimablePods=ListOf(fields(name=TEXT, count=WHOLE)),
    admissionChecks=ListOf(fields(name=TEXT, state=TEXT, message=TEXT, lastTransitionTime=TEXT)),
    accumulatedPastExecutionTimeSeconds=WHOLE,
)
PRIORITY_CLASS = fields(value=WHOLE, description=TEXT)
CHECK_SPEC = closed(controllerName=TEXT, parameters=closed(apiGroup=TEXT, kind=TEXT, name=TEXT))
CHECK_STATUS = fields(conditions=CONDITIONS)

SETS_MAX = 18
"""Pod sets of one Workload, as in Kueue."""


def check_workload_object(review: Review) -> Iterable[FieldError]:
    """Its pod sets can be counted, and each says what its pods ask for."""
    spec = review.spec
    if spec.get("queueName"):
        yield from names.dns_subdomain("spec.queueName", spec["queueName"])
    yield from within("spec.maximumExecutionTimeSeconds", spec.get("maximumExecutionTimeSeconds"), 1)
    yield from _check_priority("spec.priority", spec.get("priority"))
    sets = spec.get("podSets") or []
    if not 0 < len(sets) <= SETS_MAX:
        yield FieldError("spec.podSets", len(sets), f"must be from 1 to {SETS_MAX} pod sets")
    yield from names.distinct("spec.podSets[{}].name", [item.get("name") or "" for item in sets], "pod sets")
    for index, item in enumerate(sets):
        yield from _check_pod_set(f"spec.podSets[{index}]", item)


def _check_pod_set(path: str, item: Mapping[str, Any]) -> Iterable[FieldError]:
    yield from pod_count(f"{path}.count", item.get("count"))
    yield from within(f"{path}.minCount", item.get("minCount"), 0, max(0, item.get("count", 1)))
    pod: Manifest = (item.get("template") or {}).get("spec") or {}
    for part in ("containers", "initContainers"):
        for index, container in enumerate(pod.get(part) or []):
            where = f"{path}.template.spec.{part}[{index}].resources"
            yield from check_resources(where, container.get("resources") or {})
    yield from check_amounts(f"{path}.template.spec.overhead", pod.get("overhead"))
    yield from check_placement(f"{path}.template.spec", pod)


def check_work_priority(review: Review) -> Iterable[FieldError]:
    """A class says which priority it stands for."""
    value = review.manifest.get("value")
    if value is None:
        yield FieldError("value", None, "is required; give the class its priority")
    yield from _check_priority("value", value)


def check_admission_check(review: Review) -> Iterable[FieldError]:
    """A check says who answers it, for good."""
    name = review.spec.get("controllerName")
    if not name:
        yield FieldError("spec.controllerName", None, "is required; name the controller that answers the check")
    if review.old is not None:
        before = review.before("spec", "controllerName")
        yield from fixed("spec.controllerName", before, name, "delete the AdmissionCheck and create it anew")


def _check_priority(path: str, value: int | None) -> Iterable[FieldError]:
    yield from within(path, value, -LARGEST - 1, LARGEST)
