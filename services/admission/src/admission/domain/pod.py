"""Pods: their defaults, their priority, and what of one that exists may still change."""

from collections.abc import Iterable

from admission.domain.changes import fixed
from admission.domain.errors import FieldError
from admission.domain.pod_template import check_pod_spec, default_pod_spec
from admission.domain.priority import check_priority_class_name, resolve_priority
from admission.domain.shapes import copied
from admission.domain.topology import check_podset
from admission.domain.world import Review
from kube import Manifest

CHANGEABLE = ("activeDeadlineSeconds", "terminationGracePeriodSeconds")
DISRUPTION_KEYS = ("volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable")


def default_pod(review: Review) -> None:
    """What Kubernetes fills in for a pod."""
    spec = review.spec
    default_pod_spec(spec, "Always")
    if review.old is not None:
        # Node, priority and the like were decided for the pod; an update that does not speak of them keeps them.
        for name, value in review.old.spec.items():
            if not isinstance(value, dict | list):
                spec.setdefault(name, value)


def default_pod_priority(review: Review) -> None:
    """The number behind the pod's priority class, fixed when the pod is made."""
    if review.creating:
        resolve_priority(review.world, review.spec)


def check_pod(review: Review) -> Iterable[FieldError]:
    """The spec of a pod holds, and its priority class exists."""
    spec = review.spec
    yield from check_pod_spec("spec", spec)
    if review.creating:
        yield from check_priority_class_name("spec.priorityClassName", review.world, spec.get("priorityClassName"))
        if spec.get("nodeName") and spec.get("schedulingGates"):
            yield FieldError("spec.nodeName", spec["nodeName"], "may not be set while there are schedulingGates")
    yield from check_disruption(review)
    yield from check_podset("metadata.annotations", review.metadata.get("annotations") or {})


def check_disruption(review: Review) -> Iterable[FieldError]:
    """The bounds that a pod gives for its disruption are numbers or percentages, and one of them only."""
    annotations = review.metadata.get("annotations") or {}
    given = {key: annotations[key] for key in DISRUPTION_KEYS if key in annotations}
    for key, value in given.items():
        number = value.removesuffix("%")
        bounded = number.isdigit() and int(number) > 0 and (number == value or int(number) < 100)
        if not bounded:
            yield FieldError(f'metadata.annotations["{key}"]', value, "must be a positive number or 1% to 99%")
    if len(given) == len(DISRUPTION_KEYS):
        yield FieldError("metadata.annotations", DISRUPTION_KEYS[1], f"give {' or '.join(DISRUPTION_KEYS)}, not both")


def check_pod_update(review: Review) -> Iterable[FieldError]:
    """Of a pod that exists only images, deadlines, more tolerations and fewer scheduling gates may change."""
    if review.old is None:
        return
    old, new = copied(review.old.spec), copied(review.spec)
    default_pod_spec(old, "Always")
    gated = bool(old.get("schedulingGates"))
    yield from _check_gates(old, new)
    yield from _check_tolerations(old, new)
    for spec in (old, new):
        _drop_changeable(spec, gated=gated)
    yield from fixed("spec", old, new, "only images, deadlines, tolerations and gates of a pod may; make a new pod")


def _check_gates(old: Manifest, new: Manifest) -> Iterable[FieldError]:
    before = [gate.get("name") for gate in old.get("schedulingGates") or []]
    for index, gate in enumerate(new.get("schedulingGates") or []):
        if gate.get("name") not in before:
            where = f"spec.schedulingGates[{index}].name"
            yield FieldError(
                where, gate.get("name"), "may not be added; gates of a pod that exists can only be removed"
            )


def _check_tolerations(old: Manifest, new: Manifest) -> Iterable[FieldError]:
    kept = new.get("tolerations") or []
    for wanted in old.get("tolerations") or []:
        if wanted not in kept:
            yield FieldError("spec.tolerations", wanted.get("key"), "may not be removed; tolerations can only be added")


def _drop_changeable(spec: Manifest, *, gated: bool) -> None:
    dropped = (*CHANGEABLE, "tolerations", "schedulingGates", *(("nodeSelector", "affinity") if gated else ()))
    for name in dropped:
        spec.pop(name, None)
    for container in (spec.get("containers") or []) + (spec.get("initContainers") or []):
        container.pop("image", None)
