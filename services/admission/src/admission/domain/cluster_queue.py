"""Kueue's objects: ClusterQueues with their quotas, Cohorts, LocalQueues."""

from collections.abc import Iterable, Mapping
from typing import Any

from admission.domain import names
from admission.domain.changes import fixed
from admission.domain.errors import FieldError
from admission.domain.quantities import check_amount, sound_amounts
from admission.domain.selectors import SELECTOR, check_selector
from admission.domain.shapes import AMOUNT, EITHER, TEXT, TEXTS, WHOLE, ListOf, closed, one_of
from admission.domain.world import Review
from kube import Key, Manifest

_GROUPS = ListOf(
    closed(
        coveredResources=TEXTS,
        flavors=ListOf(
            closed(
                name=TEXT,
                resources=ListOf(closed(name=TEXT, nominalQuota=AMOUNT, borrowingLimit=AMOUNT, lendingLimit=AMOUNT)),
            )
        ),
    )
)
CLUSTER_QUEUE_SPEC = closed(
    resourceGroups=_GROUPS,
    cohortName=TEXT,
    cohort=TEXT,
    queueingStrategy=TEXT,
    namespaceSelector=SELECTOR,
    flavorFungibility=closed(whenCanBorrow=TEXT, whenCanPreempt=TEXT, preference=TEXT),
    preemption=closed(
        withinClusterQueue=TEXT,
        reclaimWithinCohort=TEXT,
        borrowWithinCohort=closed(policy=TEXT, maxPriorityThreshold=WHOLE),
    ),
    admissionChecksStrategy=closed(admissionChecks=ListOf(closed(name=TEXT, onFlavors=TEXTS))),
    admissionChecks=TEXTS,
    stopPolicy=TEXT,
    fairSharing=closed(weight=EITHER),
    admissionScope=closed(admissionMode=TEXT),
)
COHORT_SPEC = closed(parentName=TEXT, resourceGroups=_GROUPS, fairSharing=closed(weight=EITHER))
LOCAL_QUEUE_SPEC = closed(clusterQueue=TEXT, stopPolicy=TEXT, fairSharing=closed(weight=EITHER))

STOP_POLICIES = ("None", "Hold", "HoldAndDrain")
GROUPS_MAX, FLAVORS_MAX, RESOURCES_MAX = 16, 64, 64
PREEMPTION: Mapping[str, tuple[str, ...]] = {
    "withinClusterQueue": ("Never", "LowerPriority", "LowerOrNewerEqualPriority"),
    "reclaimWithinCohort": ("Never", "LowerPriority", "Any"),
}
FUNGIBILITY: Mapping[str, tuple[str, ...]] = {
    "whenCanBorrow": ("MayStopSearch", "TryNextFlavor", "Borrow"),
    "whenCanPreempt": ("TryNextFlavor", "MayStopSearch", "Preempt"),
    "preference": ("BorrowingOverPreemption", "PreemptionOverBorrowing"),
}
ADMISSION_MODES = ("UsageBasedAdmissionFairSharing", "NoAdmissionFairSharing")
COHORT_KIND = "Cohort.kueue.x-k8s.io"


def default_cluster_queue(review: Review) -> None:
    """First in, first out without blocking; nobody is preempted unless the queue says so."""
    spec = review.spec
    spec.setdefault("queueingStrategy", "BestEffortFIFO")
    spec.setdefault("stopPolicy", "None")
    preemption = spec.setdefault("preemption", {})
    for name, allowed in PREEMPTION.items():
        preemption.setdefault(name, allowed[0])
    fungibility = spec.setdefault("flavorFungibility", {})
    for name in ("whenCanBorrow", "whenCanPreempt"):
        fungibility.setdefault(name, FUNGIBILITY[name][0])


def check_cluster_queue(review: Review) -> Iterable[FieldError]:
    """Quotas make sense, and preemption while borrowing only where the queue reclaims at all."""
    spec = review.spec
    yield from _check_groups(spec.get("resourceGroups") or [], cohort=spec.get("cohortName") or spec.get("cohort"))
    for part in ("cohortName", "cohort"):
        yield from _check_name(f"spec.{part}", spec.get(part))
    mode = (spec.get("admissionScope") or {}).get("admissionMode")
    yield from one_of("spec.admissionScope.admissionMode", mode, ADMISSION_MODES)
    yield from one_of("spec.queueingStrategy", spec["queueingStrategy"], ("BestEffortFIFO", "StrictFIFO"))
    yield from one_of("spec.stopPolicy", spec["stopPolicy"], STOP_POLICIES)
    yield from _check_weight(spec)
    yield from check_selector("spec.namespaceSelector", spec.get("namespaceSelector"))
    preemption = spec["preemption"]
    for name, allowed in PREEMPTION.items():
        yield from one_of(f"spec.preemption.{name}", preemption[name], allowed)
    borrowing = (preemption.get("borrowWithinCohort") or {}).get("policy")
    yield from one_of("spec.preemption.borrowWithinCohort.policy", borrowing, ("Never", "LowerPriority"))
    if borrowing not in (None, "Never") and preemption["reclaimWithinCohort"] == "Never":
        rule = "reclaimWithinCohort is Never, so nothing is preempted while borrowing; set that too, or this to Never"
        yield FieldError("spec.preemption.borrowWithinCohort.policy", borrowing, rule)
    for name, allowed in FUNGIBILITY.items():
        yield from one_of(f"spec.flavorFungibility.{name}", spec["flavorFungibility"].get(name), allowed)


def _check_groups(groups: list[Manifest], *, cohort: str | None) -> Iterable[FieldError]:
    covered, flavors = list[str](), list[str]()
    path = "spec.resourceGroups"
    if len(groups) > GROUPS_MAX:
        yield FieldError(path, len(groups), f"must be at most {GROUPS_MAX} groups")
    for index, group in enumerate(groups):
        yield from _check_group(f"{path}[{index}]", group, cohort=cohort)
        covered += group.get("coveredResources") or []
        flavors += [flavor.get("name") or "" for flavor in group.get("flavors") or []]
    yield from names.distinct(f"{path}.coveredResources", covered, "covered resources")
    yield from names.distinct(f"{path}.flavors", flavors, "flavors")


def _check_group(path: str, group: Manifest, *, cohort: str | None) -> Iterable[FieldError]:
    covered, flavors = group.get("coveredResources") or [], group.get("flavors") or []
    for name, size, most in (("coveredResources", len(covered), RESOURCES_MAX), ("flavors", len(flavors), FLAVORS_MAX)):
        if not 0 < size <= most:
            yield FieldError(f"{path}.{name}", size, f"must be from 1 to {most} entries")
    for index, flavor in enumerate(flavors):
        where, quotas = f"{path}.flavors[{index}]", flavor.get("resources") or []
        given = [quota.get("name") or "" for quota in quotas]
        if given != covered:
            rule = f"must hold the covered resources in their order: {', '.join(covered)}"
            yield FieldError(f"{where}.resources", ", ".join(given) or None, rule)
        for number, quota in enumerate(quotas):
            yield from _check_quota(f"{where}.resources[{number}]", quota, cohort=cohort)


def _check_quota(path: str, quota: Mapping[str, Any], *, cohort: str | None) -> Iterable[FieldError]:
    name = quota.get("name") or ""
    for part in ("nominalQuota", "borrowingLimit", "lendingLimit"):
        if part in quota:
            yield from check_amount(f"{path}.{part}", quota[part])
    if "nominalQuota" not in quota:
        yield FieldError(f"{path}.nominalQuota", None, "is required; 0 for a resource that is only borrowed")
    for part in ("borrowingLimit", "lendingLimit"):
        if part in quota and not cohort:
            yield FieldError(f"{path}.{part}", quota[part], "needs a cohort; set cohortName or leave the limit out")
    if "lendingLimit" not in quota or "nominalQuota" not in quota:
        return
    nominal, lending = (sound_amounts({name: quota[part]}) for part in ("nominalQuota", "lendingLimit"))
    if nominal and lending.get(name, 0) > nominal[name]:
        rule = f"must be at most the nominalQuota ({quota['nominalQuota']}); nobody lends more than they have"
        yield FieldError(f"{path}.lendingLimit", quota["lendingLimit"], rule)


def _check_name(path: str, name: str | None) -> Iterable[FieldError]:
    """The name of another of Kueue's objects, where one is given."""
    if name:
        yield from names.dns_subdomain(path, name)


def _check_weight(spec: Manifest) -> Iterable[FieldError]:
    weight = (spec.get("fairSharing") or {}).get("weight")
    if weight is not None:
        yield from check_amount("spec.fairSharing.weight", weight)


def check_cohort(review: Review) -> Iterable[FieldError]:
    """Cohorts make a tree."""
    spec, name = review.spec, review.key.name
    parent = spec.get("parentName")
    yield from _check_name("spec.parentName", parent)
    yield from _check_weight(spec)
    yield from _check_groups(spec.get("resourceGroups") or [], cohort=parent)
    seen: set[str] = set()
    while parent and parent not in seen:
        if parent == name:
            yield FieldError(
                "spec.parentName", spec["parentName"], f"cohort {name} would be under itself; name another"
            )
            return
        seen.add(parent)
        above = review.world.get(Key(COHORT_KIND, "", parent))
        parent = above.spec.get("parentName") if above else None


def default_local_queue(review: Review) -> None:
    review.spec.setdefault("stopPolicy", "None")


def check_local_queue(review: Review) -> Iterable[FieldError]:
    """A local queue leads to one cluster queue, for good."""
    spec = review.spec
    if not spec.get("clusterQueue"):
        yield FieldError("spec.clusterQueue", None, "is required; name the ClusterQueue that this one leads to")
    yield from _check_name("spec.clusterQueue", spec.get("clusterQueue"))
    yield from one_of("spec.stopPolicy", spec["stopPolicy"], STOP_POLICIES)
    yield from _check_weight(spec)
    if review.old is not None:
        before = review.before("spec", "clusterQueue")
        yield from fixed(
            "spec.clusterQueue", before, spec.get("clusterQueue"), "delete the LocalQueue and create it anew"
        )
