"""What objects count for in a ResourceQuota, by the names of its ``hard``, and which pods its scopes are about.

Source: Kubernetes' resource quotas (v1): https://kubernetes.io/docs/concepts/policy/resource-quotas.
"""

from collections.abc import Mapping
from typing import Any

from kube.keys import Manifest
from kube.kinds import KINDS
from kube.objects import Object
from kube.pods import is_finished, pod_request, sound_pod_request
from kube.volumes import CLAIM
from resources import Amounts, QuantityError, parse_amounts

RESOURCE_QUOTA = "ResourceQuota"
SCOPES = ("Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity")
"""The scopes that are honoured; one of any other name keeps a quota from counting anything."""

_PLAIN = ("cpu", "memory", "ephemeral-storage")
"""Resources whose requests also go by their own names."""
_COUNTED = ("services", "configmaps", "secrets", "resourcequotas", "persistentvolumeclaims")
"""Kinds whose number also goes by the plural alone."""
_OF_CLASS = ".storageclass.storage.k8s.io/"
_AFFINITIES = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def counts_of(item: Object) -> Amounts:
    """What ``item`` counts for, by the names that a quota may limit. A pod that has ended counts as an object alone."""
    info = KINDS.get(item.kind)
    found: Amounts = {}
    if info is not None:
        found[f"count/{info.plural}.{info.group}" if info.group else f"count/{info.plural}"] = 1
        if not info.group and info.plural in _COUNTED:
            found[info.plural] = 1
    if item.kind == "Pod" and not is_finished(item):
        return found | pod_counts(item.spec)
    if item.kind == CLAIM:
        return found | _claim_counts(item.spec)
    if item.kind == "Service":
        return found | _service_counts(item.spec)
    return found


def pod_counts(spec: Manifest) -> Amounts:
    """What a pod of ``spec`` counts for while it lives."""
    found: Amounts = {"pods": 1}
    for name, amount in sound_pod_request(spec).items():
        found[f"requests.{name}"] = amount
        if name in _PLAIN:
            found[name] = amount
    return found | _limits(sound_pod_request(_with_limits_for_requests(spec)), _sound(spec.get("overhead")))


def minimum_counts(spec: Manifest) -> Amounts:
    """What a pod of ``spec`` adds to the minResources of its group: its requests, and its limits by the names that a quota has.

    Raises QuantityError.
    """
    limits = pod_request(_with_limits_for_requests(spec))
    return pod_request(spec) | _limits(limits, parse_amounts(spec.get("overhead")))


def tracks(quota: Manifest, pod: Manifest) -> bool:
    """Whether a quota of spec ``quota`` is about a pod of spec ``pod``: every scope has to hold."""
    scopes = [{"scopeName": name, "operator": "Exists"} for name in quota.get("scopes") or ()]
    scopes += (quota.get("scopeSelector") or {}).get("matchExpressions") or ()
    return all(_holds(scope, pod) for scope in scopes)


def is_scoped(quota: Manifest) -> bool:
    """Whether the quota is about some pods only."""
    return bool(quota.get("scopes") or (quota.get("scopeSelector") or {}).get("matchExpressions"))


def _holds(scope: Manifest, pod: Manifest) -> bool:
    match scope.get("scopeName"):
        case "Terminating":
            return pod.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return pod.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return _is_best_effort(pod)
        case "NotBestEffort":
            return not _is_best_effort(pod)
        case "PriorityClass":
            return _has_class(scope, str(pod.get("priorityClassName") or ""))
        case "CrossNamespacePodAffinity":
            return _looks_abroad(pod)
    return False


def _has_class(scope: Manifest, name: str) -> bool:
    values = scope.get("values") or ()
    match scope.get("operator"):
        case "In":
            return name in values
        case "NotIn":
            return name not in values
        case "DoesNotExist":
            return not name
    return bool(name)


def _is_best_effort(pod: Manifest) -> bool:
    containers = [*(pod.get("containers") or ()), *(pod.get("initContainers") or ()), pod]
    return not any(_asks(container.get("resources") or {}) for container in containers)


def _asks(resources: Mapping[str, Any]) -> bool:
    return any(name in (resources.get(part) or {}) for part in ("requests", "limits") for name in ("cpu", "memory"))


def _looks_abroad(pod: Manifest) -> bool:
    """Whether a term of its pod affinity or anti-affinity names namespaces."""
    affinity = pod.get("affinity") or {}
    for part in ("podAffinity", "podAntiAffinity"):
        for which in _AFFINITIES:
            for item in (affinity.get(part) or {}).get(which) or ():
                term = item.get("podAffinityTerm") or item
                if term.get("namespaces") or term.get("namespaceSelector") is not None:
                    return True
    return False


def _with_limits_for_requests(spec: Manifest) -> Manifest:
    def limited(containers: Any) -> list[Manifest]:
        return [
            {**item, "resources": {"requests": (item.get("resources") or {}).get("limits") or {}}}
            for item in containers or ()
        ]

    found = {**spec, "containers": limited(spec.get("containers")), "overhead": None}
    if "initContainers" in spec:
        found["initContainers"] = limited(spec["initContainers"])
    if "resources" in spec:
        found["resources"] = {"requests": (spec["resources"] or {}).get("limits") or {}}
    return found


def _claim_counts(spec: Manifest) -> Amounts:
    asked = _sound((spec.get("resources") or {}).get("requests"))
    found = {"requests.storage": asked.get("storage", 0)}
    name = spec.get("storageClassName")
    if name:
        found |= {f"{name}{_OF_CLASS}requests.storage": asked.get("storage", 0)}
        found |= {f"{name}{_OF_CLASS}persistentvolumeclaims": 1}
    return found


def _service_counts(spec: Manifest) -> Amounts:
    balanced, ports = spec.get("type") == "LoadBalancer", len(spec.get("ports") or ())
    opened = ports if balanced or spec.get("type") == "NodePort" else 0
    return {"services.loadbalancers": int(balanced), "services.nodeports": opened}


def _limits(amounts: Amounts, overhead: Amounts) -> Amounts:
    """Limits by the names that a quota has; the overhead is on top of those that there are."""
    return {f"limits.{name}": amount + overhead.get(name, 0) for name, amount in amounts.items() if amount}


def _sound(amounts: Any) -> Amounts:
    try:
        return parse_amounts(amounts)
    except (QuantityError, AttributeError, TypeError):
        return {}
