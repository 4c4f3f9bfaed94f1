"""Whether a pod of a spec may be on a node at all, by selector, affinity and taints; room is not asked for."""

from collections.abc import Iterable

from kube import Manifest, Object
from kube.selectors import SelectorError, matches


def may_run(spec: Manifest, node: Object) -> bool:
    """Whether the node's labels suit ``spec`` and its taints are tolerated."""
    labels = node.labels
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    return _affine(spec, node) and all(_tolerated(spec, taint) for taint in _taints(node))


def _affine(spec: Manifest, node: Object) -> bool:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    fields = {"metadata.name": node.name}
    for term in required.get("nodeSelectorTerms") or ():
        expressions, meant = term.get("matchExpressions") or (), term.get("matchFields") or ()
        if (expressions or meant) and _match(expressions, node.labels) and _match(meant, fields):
            return True
    return False


def _match(expressions: Iterable[Manifest], labels: dict[str, str]) -> bool:
    return all(_holds(expression, labels) for expression in expressions)


def _holds(expression: Manifest, labels: dict[str, str]) -> bool:
    """One requirement; nodes know two operators more than label selectors."""
    value = labels.get(str(expression.get("key")), "")
    if expression.get("operator") in ("Gt", "Lt"):
        bound = str((expression.get("values") or [""])[0])
        if not (value.lstrip("-").isdigit() and bound.lstrip("-").isdigit()):
            return False
        return int(value) > int(bound) if expression["operator"] == "Gt" else int(value) < int(bound)
    try:
        return matches({"matchExpressions": [expression]}, labels)
    except SelectorError:
        return False


def _taints(node: Object) -> list[Manifest]:
    taints = list(node.spec.get("taints") or ())
    if node.spec.get("unschedulable"):
        taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    return [taint for taint in taints if taint.get("effect") in ("NoSchedule", "NoExecute")]


def _tolerated(spec: Manifest, taint: Manifest) -> bool:
    return any(tolerates(toleration, taint) for toleration in spec.get("tolerations") or ())


def tolerates(toleration: Manifest, taint: Manifest) -> bool:
    """Whether a toleration is one of the taint, for however long."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    key = toleration.get("key")
    if toleration.get("operator") == "Exists":
        return not key or key == taint.get("key")
    return bool(key == taint.get("key") and str(toleration.get("value") or "") == str(taint.get("value") or ""))
