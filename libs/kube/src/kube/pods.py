"""What a pod asks of a node, and where it stands: the questions that every reader of pods has."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kube.json_text import read_json
from kube.keys import Manifest
from kube.objects import Object
from resources import Amounts, QuantityError, add, largest, parse_amounts

PROBES = "tidegate.dev/probes"
"""Annotation of a pod: JSON of condition → probe. Who runs the pod makes the probes and says in the conditions what came."""


def asked_probes(annotations: Mapping[str, str]) -> dict[str, Manifest]:
    """The probes that a pod's annotation asks for, by the conditions that are to tell of them; none where it has no sense.

    The name of such a condition has a domain, as no condition of Kubernetes' own has.
    """
    try:
        found = read_json(annotations.get(PROBES) or "{}")
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {name: probe for name, probe in found.items() if "/" in name and isinstance(probe, dict)}


def pod_request(spec: Manifest) -> Amounts:
    """What a pod of ``spec`` needs on a node, as the Kubernetes scheduler counts it.

    Its containers and sidecars run together; an init container runs beside the sidecars before it; a request of the pod as
    a whole wins, and the overhead is on top. A limit without a request is one; a limit of the pod as a whole only where no
    container requests anything of the resource. Raises QuantityError naming the resource that is wrong.
    """
    return _pod_request(spec, parse_amounts)


def sound_pod_request(spec: Manifest) -> Amounts:
    """Like pod_request, but an amount that is no quantity counts as nothing: it was refused at admission."""
    try:
        return _pod_request(spec, parse_amounts)
    except (QuantityError, AttributeError, TypeError):
        return _pod_request(spec, _sound_amounts)


def container_request(container: Manifest) -> Amounts:
    """The requests of one container, its limits where it names none. Raises QuantityError."""
    return _requests(container, parse_amounts)


def _pod_request(spec: Manifest, read: Callable[[Any], Amounts]) -> Amounts:
    total: Amounts = {}
    for container in spec.get("containers") or ():
        need = _requests(container, read)
        total = add(total, need) if total else need
    if first := spec.get("initContainers"):
        sidecars, peak = _beginning(first, read)
        total = largest(add(total, sidecars), peak)
    if whole := spec.get("resources"):
        total = {**read(whole.get("limits")), **total, **read(whole.get("requests"))}
    overhead = spec.get("overhead")
    return add(total, read(overhead)) if overhead else total


def _beginning(containers: Iterable[Manifest], read: Callable[[Any], Amounts]) -> tuple[Amounts, Amounts]:
    """What the sidecars among init containers need together, and the most that is needed before the others start."""
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in containers:
        need = add(sidecars, _requests(container, read))
        peak = largest(peak, need)
        if container.get("restartPolicy") == "Always":
            sidecars = need
    return sidecars, peak


def is_finished(pod: Object) -> bool:
    """Whether the pod has come to its end: it holds nothing of its node any more."""
    return pod.status.get("phase") in ("Succeeded", "Failed")


def is_ready(pod: Object) -> bool:
    """Whether the node says that the pod serves."""
    return has_condition(pod.status, "Ready")


def has_condition(status: Manifest, name: str) -> bool:
    """Whether the condition ``name`` of ``status`` is True."""
    conditions: Iterable[Manifest] = status.get("conditions") or ()
    return any(item.get("type") == name and item.get("status") == "True" for item in conditions)


def same_but_for_node(old: Manifest, new: Manifest) -> bool:
    """Whether two pod specs differ in nothing but the node: what a binding changes."""
    return {**old, "nodeName": ""} == {**new, "nodeName": ""}


def _requests(holder: Manifest, read: Callable[[Any], Amounts]) -> Amounts:
    """Requests of a container."""
    resources = holder.get("resources")
    if not resources:
        return {}
    limits, requests = resources.get("limits"), resources.get("requests")
    return read({**limits, **(requests or {})} if limits else requests)


def _sound_amounts(listed: Any) -> Amounts:
    if not isinstance(listed, dict):
        return {}
    return {name: amount for name, value in listed.items() for amount in _one(name, value)}


def _one(name: str, value: Any) -> list[int]:
    try:
        return list(parse_amounts({name: value}).values())
    except QuantityError:
        return []
