"""Kueue's objects as far as quota goes: ClusterQueues, Cohorts, LocalQueues, ResourceFlavors."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kube import Manifest, Object
from queue_manager.domain.quotas.queue_tree import PLACEMENT
from resources import QuantityError, parse_amounts, parse_milli

CLUSTER_QUEUE = "ClusterQueue.kueue.x-k8s.io"
LOCAL_QUEUE_KIND = "LocalQueue.kueue.x-k8s.io"
COHORT = "Cohort.kueue.x-k8s.io"
FLAVOR = "ResourceFlavor.kueue.x-k8s.io"
PRIORITY = "PriorityClass.scheduling.k8s.io"
TOPOLOGY = "Topology.kueue.x-k8s.io"
WORK_PRIORITY = "WorkloadPriorityClass.kueue.x-k8s.io"
CHECK = "AdmissionCheck.kueue.x-k8s.io"

NONE, HOLD, DRAIN = "None", "Hold", "HoldAndDrain"

FlavorResource = tuple[str, str]
"""What quota is given of: a resource of a flavor."""

Quotas = dict[FlavorResource, int]


@dataclass(frozen=True, slots=True)
class ResourceGroup:
    """Resources that a workload takes of one flavor, and the flavors in the order in which they are tried."""

    resources: tuple[str, ...]
    flavors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QuotaSpec:
    """Quotas of a ClusterQueue or Cohort; a limit that is not there is none."""

    groups: tuple[ResourceGroup, ...] = ()
    nominal: Quotas = field(default_factory=dict)
    borrowing: Quotas = field(default_factory=dict)
    lending: Quotas = field(default_factory=dict)
    weight_milli: int = 1000
    covered: frozenset[str] = frozenset()
    """The resources that any flavor covers."""


@dataclass(frozen=True, slots=True)
class ClusterQueue:
    """One ClusterQueue; words as in Kueue's API, with Kueue's defaults."""

    name: str
    uid: str
    cohort: str
    quota: QuotaSpec
    strict: bool = False
    selector: Manifest | None = None
    stop: str = NONE
    borrow_first: bool = True
    """Whether a flavor in which the workload has to borrow ends the search for one."""
    preempt_first: bool = False
    """Whether a flavor in which others have to go ends the search."""
    prefer_borrowing: bool = True
    """Whether borrowing is better than sending others away."""
    within_queue: str = "Never"
    reclaim: str = "Never"
    borrow_policy: str = "Never"
    borrow_threshold: int | None = None
    checks: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The admission checks to be answered, each with the flavors that it is about; none for all."""
    by_use: bool = False
    """Whether its LocalQueues are served by what they have used, the least first."""
    placement: str = ""
    """Whether its work is packed or spread over nodes, if it says so."""

    def checks_of(self, flavors: Iterable[str]) -> list[str]:
        """The checks that have to agree before work with quota of these flavors may start."""
        if not self.checks:
            return []
        used = set(flavors)
        return [name for name, about in self.checks if not about or used.intersection(about)]


@dataclass(frozen=True, slots=True)
class Cohort:
    """One Cohort; ``parent`` is "" for a root."""

    name: str
    uid: str
    parent: str
    quota: QuotaSpec


@dataclass(frozen=True, slots=True)
class LocalQueue:
    """Where the work of a namespace enters a ClusterQueue."""

    namespace: str
    name: str
    uid: str
    cluster_queue: str
    stop: str = NONE
    weight_milli: int = 1000


@dataclass(frozen=True, slots=True)
class Check:
    """An AdmissionCheck: who answers it, and whether that one says that it does not work."""

    name: str
    controller: str = ""
    fails: str = ""
    """Why it does not work; "" where nobody says so."""


@dataclass(frozen=True, slots=True)
class Flavor:
    """A kind of nodes: their labels, and the taints that a pod has to tolerate beyond what the flavor itself adds."""

    name: str
    labels: dict[str, str] = field(default_factory=dict)
    taints: tuple[Manifest, ...] = ()
    tolerations: tuple[Manifest, ...] = ()
    topology: str = ""
    levels: tuple[str, ...] | None = None
    """The labels that its topology is made of, the widest first; None where it has none, or names one that is not there."""


def read_cluster_queue(item: Object) -> ClusterQueue:
    """The ClusterQueue that ``item`` describes."""
    spec = item.spec
    fungibility, preemption = spec.get("flavorFungibility") or {}, spec.get("preemption") or {}
    borrowing = preemption.get("borrowWithinCohort") or {}
    return ClusterQueue(
        name=item.name,
        uid=item.uid,
        cohort=str(spec.get("cohortName") or spec.get("cohort") or ""),
        quota=read_quotas(spec),
        strict=spec.get("queueingStrategy") == "StrictFIFO",
        selector=spec.get("namespaceSelector"),
        stop=str(spec.get("stopPolicy") or NONE),
        borrow_first=fungibility.get("whenCanBorrow") != "TryNextFlavor",
        preempt_first=fungibility.get("whenCanPreempt") in ("MayStopSearch", "Preempt"),
        prefer_borrowing=fungibility.get("preference") != "PreemptionOverBorrowing",
        within_queue=str(preemption.get("withinClusterQueue") or "Never"),
        reclaim=str(preemption.get("reclaimWithinCohort") or "Never"),
        borrow_policy=str(borrowing.get("policy") or "Never"),
        borrow_threshold=borrowing.get("maxPriorityThreshold"),
        checks=_checks(spec),
        placement=item.annotations.get(PLACEMENT, ""),
        by_use=(spec.get("admissionScope") or {}).get("admissionMode") == "UsageBasedAdmissionFairSharing",
    )


def _checks(spec: Manifest) -> tuple[tuple[str, tuple[str, ...]], ...]:
    rules = (spec.get("admissionChecksStrategy") or {}).get("admissionChecks") or ()
    found = [(str(rule.get("name")), tuple(map(str, rule.get("onFlavors") or ()))) for rule in rules]
    return (*found, *((str(name), ()) for name in spec.get("admissionChecks") or ()))


def read_check(item: Object) -> Check:
    """The AdmissionCheck that ``item`` describes."""
    active: Manifest = next((word for word in item.status.get("conditions") or () if word.get("type") == "Active"), {})
    fails = str(active.get("message") or active.get("reason") or "it is not active")
    return Check(
        item.name, str(item.spec.get("controllerName") or ""), fails if active.get("status") == "False" else ""
    )


def read_cohort(item: Object) -> Cohort:
    """The Cohort that ``item`` describes."""
    spec = item.spec
    return Cohort(item.name, item.uid, str(spec.get("parentName") or spec.get("parent") or ""), read_quotas(spec))


def read_local_queue(item: Object) -> LocalQueue:
    """The LocalQueue that ``item`` describes."""
    spec = item.spec
    stop = str(spec.get("stopPolicy") or NONE)
    weight = _weight((spec.get("fairSharing") or {}).get("weight"))
    return LocalQueue(item.namespace, item.name, item.uid, str(spec.get("clusterQueue") or ""), stop, weight)


def read_flavor(item: Object) -> Flavor:
    """The ResourceFlavor that ``item`` describes."""
    spec = item.spec
    labels = {str(name): str(value) for name, value in (spec.get("nodeLabels") or {}).items()}
    taints, tolerations = tuple(spec.get("nodeTaints") or ()), tuple(spec.get("tolerations") or ())
    return Flavor(item.name, labels, taints, tolerations, str(spec.get("topologyName") or ""))


def read_topology(item: Object) -> tuple[str, ...]:
    """The labels of a Topology's levels, the widest first."""
    return tuple(str(level.get("nodeLabel") or "") for level in item.spec.get("levels") or ())


def read_quotas(spec: Manifest) -> QuotaSpec:
    """The quotas of a ClusterQueue's or Cohort's spec; an amount that is none counts as 0."""
    found = QuotaSpec(weight_milli=_weight((spec.get("fairSharing") or {}).get("weight")))
    groups = []
    for group in spec.get("resourceGroups") or ():
        flavors = group.get("flavors") or ()
        for flavor in flavors:
            for item in flavor.get("resources") or ():
                place = (str(flavor.get("name")), str(item.get("name")))
                found.nominal[place] = _amount(place[1], item.get("nominalQuota")) or 0
                for limits, word in ((found.borrowing, "borrowingLimit"), (found.lending, "lendingLimit")):
                    limit = _amount(place[1], item.get(word))
                    if limit is not None:
                        limits[place] = limit
        covered = tuple(str(name) for name in group.get("coveredResources") or ())
        groups.append(ResourceGroup(covered, tuple(str(flavor.get("name")) for flavor in flavors)))
    every = frozenset(name for group in groups for name in group.resources)
    return QuotaSpec(tuple(groups), found.nominal, found.borrowing, found.lending, found.weight_milli, every)


def _amount(resource: str, value: Any) -> int | None:
    if value is None:
        return None
    try:
        return parse_amounts({resource: value})[resource]
    except QuantityError:
        return 0


def _weight(value: Any) -> int:
    try:
        return 1000 if value is None else max(0, parse_milli(value))
    except QuantityError:
        return 1000
