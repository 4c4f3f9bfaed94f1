"""Pod groups: how many pods have to start together, in which queue, how close to each other."""

from collections.abc import Iterable

from admission.domain import names
from admission.domain.errors import FieldError
from admission.domain.network_topology import NETWORK_TOPOLOGY, check_topology, default_topology
from admission.domain.priority import warn_missing_class
from admission.domain.quantities import check_amounts
from admission.domain.queue_choice import DEFAULT, NAMESPACE_QUEUE, check_queue, choose_queue
from admission.domain.selectors import SELECTOR, check_selector
from admission.domain.shapes import AMOUNTS, MAPPING, TEXT, TEXTS, WHOLE, Idle, ListOf, MapOf, closed, within
from admission.domain.world import Review
from kube import Manifest

POD_GROUP_SPEC = closed(
    minMember=WHOLE,
    minTaskMember=MapOf(WHOLE),
    queue=TEXT,
    priorityClassName=TEXT,
    minResources=AMOUNTS,
    networkTopology=NETWORK_TOPOLOGY,
    subGroupPolicy=ListOf(
        closed(
            name=TEXT,
            networkTopology=NETWORK_TOPOLOGY,
            subGroupSize=WHOLE,
            minSubGroups=WHOLE,
            labelSelector=SELECTOR,
            matchLabelKeys=TEXTS,
        )
    ),
)
_POLICY = closed(basic=closed(), gang=closed(minCount=WHOLE))
_UNUSED = {
    "disruptionMode": Idle(TEXT),
    "priority": Idle(WHOLE),
    "resourceClaims": Idle(ListOf(MAPPING)),
    "schedulingConstraints": Idle(MAPPING),
}
KUBERNETES_SPEC = closed(
    podGroupTemplateRef=closed(workload=closed(workloadName=TEXT, podGroupTemplateName=TEXT)),
    schedulingPolicy=_POLICY,
    priorityClassName=TEXT,
    **_UNUSED,
)
WORKLOAD_SPEC = closed(
    controllerRef=closed(apiGroup=TEXT, kind=TEXT, name=TEXT),
    podGroupTemplates=ListOf(closed(name=TEXT, schedulingPolicy=_POLICY, priorityClassName=TEXT, **_UNUSED)),
)
MOST_TEMPLATES = 8
COSCHEDULING_SPEC = closed(minMember=WHOLE, scheduleTimeoutSeconds=WHOLE, minResources=Idle(AMOUNTS))


def default_pod_group(review: Review) -> None:
    """At least one member, the queue of its namespace, hard topology, sub-groups of one."""
    spec = review.spec
    spec.setdefault("minMember", 1)
    default_topology(spec)
    for policy in spec.get("subGroupPolicy") or []:
        policy.setdefault("subGroupSize", 1)
        policy.setdefault("minSubGroups", 0)
        default_topology(policy)
    if not spec.get("queue"):
        spec["queue"] = choose_queue(review)
    elif spec["queue"] == DEFAULT and review.creating:
        # Clients fill in `default` themselves, so it counts as no choice where the namespace has made one.
        spec["queue"] = review.namespace_annotation(NAMESPACE_QUEUE) or DEFAULT


def check_pod_group(review: Review) -> Iterable[FieldError]:
    """Minima are no negative numbers, sub-groups have sizes and names, and the queue takes the group."""
    spec = review.spec
    yield from within("spec.minMember", spec["minMember"], 0)
    for role, minimum in (spec.get("minTaskMember") or {}).items():
        yield from within(f"spec.minTaskMember.{role}", minimum, 0)
    yield from check_amounts("spec.minResources", spec.get("minResources"))
    yield from check_topology("spec", spec)
    yield from _check_sub_groups(review)
    if review.creating or review.before("spec", "queue") != spec["queue"]:
        yield from check_queue("spec.queue", review, spec["queue"])


def _check_sub_groups(review: Review) -> Iterable[FieldError]:
    policies = review.spec.get("subGroupPolicy") or []
    for index, policy in enumerate(policies):
        where = f"spec.subGroupPolicy[{index}]"
        if not policy.get("name"):
            yield FieldError(f"{where}.name", None, "is required; give the sub-groups a name")
        yield from within(f"{where}.subGroupSize", policy["subGroupSize"], 1)
        yield from within(f"{where}.minSubGroups", policy["minSubGroups"], 0)
        yield from check_topology(where, policy)
        yield from check_selector(f"{where}.labelSelector", policy.get("labelSelector"))
    given = [policy.get("name") or "" for policy in policies]
    yield from names.distinct("spec.subGroupPolicy[{}].name", given, "sub-group policies")


def warn_pod_group(review: Review) -> Iterable[str]:
    return warn_missing_class("spec.priorityClassName", review.world, review.spec.get("priorityClassName"))


def default_coscheduling_group(review: Review) -> None:
    """A group of the scheduler plugins has at least one member."""
    review.spec.setdefault("minMember", 1)


def check_coscheduling_group(review: Review) -> Iterable[FieldError]:
    spec = review.spec
    yield from within("spec.minMember", spec["minMember"], 0)
    yield from within("spec.scheduleTimeoutSeconds", spec.get("scheduleTimeoutSeconds"), 0)
    yield from check_amounts("spec.minResources", spec.get("minResources"))


def check_kubernetes_group(review: Review) -> Iterable[FieldError]:
    """Kubernetes' own PodGroup has one policy, and does not change it."""
    yield from _check_policy("spec.schedulingPolicy", review.spec.get("schedulingPolicy"))
    if not review.creating and review.before("spec", "schedulingPolicy") != review.spec.get("schedulingPolicy"):
        yield FieldError("spec.schedulingPolicy", None, "cannot be changed; make another PodGroup")


def check_kubernetes_workload(review: Review) -> Iterable[FieldError]:
    """A few templates of groups, with different names."""
    templates = review.spec.get("podGroupTemplates") or []
    yield from within("spec.podGroupTemplates", len(templates), 1, MOST_TEMPLATES)
    for index, template in enumerate(templates):
        yield from _check_policy(f"spec.podGroupTemplates[{index}].schedulingPolicy", template.get("schedulingPolicy"))
    given = [template.get("name") or "" for template in templates]
    yield from names.distinct("spec.podGroupTemplates[{}].name", given, "templates")


def _check_policy(where: str, policy: Manifest | None) -> Iterable[FieldError]:
    given = [name for name in ("basic", "gang") if (policy or {}).get(name) is not None]
    if len(given) != 1:
        yield FieldError(where, given or None, "has to be one of `basic` and `gang`")
    elif given == ["gang"]:
        yield from within(f"{where}.gang.minCount", (policy or {})["gang"].get("minCount") or 0, 1)
