"""What a pod asks of a node, and where it stands: the questions that every reader of pods has."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

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
        found = json.loads(annotations.get(PROBES) or "{}")
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {name: probe for name, probe in found.items() if "/" in name and isinstance(probe, dict)}


def pod_request(spec: Manifest) -> Amounts:
    """What a pod of ``spec`` needs on a node, as the Kubernetes scheduler counts it.

    Its containers and sidecars run together; an init container runs beside the sidecars before it; the overhead is on top,
    and a request of the pod as a whole wins. An amount that is no quantity counts as nothing: it was refused at admission.
    """
    running: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        need = _requests(container)
        if container.get("restartPolicy") == "Always":
            running = add(running, need)
            peak = largest(peak, running)
        else:
            peak = largest(peak, add(running, need))
    for container in spec.get("containers") or ():
        running = add(running, _requests(container))
    total = largest(running, peak)
    total.update(_requests(spec))
    overhead = spec.get("overhead")
    return add(total, _amounts(overhead)) if overhead else total


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


def _requests(container: Manifest) -> Amounts:
    return _amounts((container.get("resources") or {}).get("requests"))


def _amounts(listed: Any) -> Amounts:
    if not isinstance(listed, dict):
        return {}
    try:
        return parse_amounts(listed)
    except QuantityError:
        return {name: amount for name, value in listed.items() for amount in _one(name, value)}


def _one(name: str, value: Any) -> list[int]:
    try:
        return list(parse_amounts({name: value}).values())
    except QuantityError:
        return []
