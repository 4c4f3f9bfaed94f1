"""What a pod asks for as a whole, beside its containers: ``spec.resources`` and ``spec.resourceClaims``."""

from collections.abc import Iterable, Mapping
from typing import Any

from admission.domain import names
from admission.domain.containers import check_resources
from admission.domain.errors import FieldError
from admission.domain.quantities import sound_amounts
from admission.domain.shapes import entry
from kube.pods import sound_pod_request
from resources import exceeds, format_amounts

HUGE_PAGES = "hugepages-"


def check_pod_resources(path: str, spec: Mapping[str, Any]) -> Iterable[FieldError]:
    """Only what containers can share; at least what they request together, and no container's limit above the pod's."""
    resources = spec.get("resources")
    if not resources:
        return
    where = f"{path}.resources"
    yield from check_resources(where, resources)
    for part in ("requests", "limits"):
        for name in resources.get(part) or {}:
            if name not in ("cpu", "memory") and not name.startswith(HUGE_PAGES):
                rule = "cannot be asked for by a pod as a whole; ask for it in a container"
                yield FieldError(entry(f"{where}.{part}", name), resources[part][name], rule)
    own, limits = sound_amounts(resources.get("requests")), sound_amounts(resources.get("limits"))
    lists = {name: spec.get(name) or [] for name in ("containers", "initContainers")}
    needed = sound_pod_request(lists)
    for name in exceeds(needed, own):
        least = format_amounts({name: needed[name]})[name]
        rule = f"must be at least what the containers request together, {least}; raise it"
        yield FieldError(entry(f"{where}.requests", name), resources["requests"][name], rule)
    for list_name, containers in lists.items():
        for index, container in enumerate(containers):
            given = (container.get("resources") or {}).get("limits") or {}
            for name in exceeds(sound_amounts(given), limits):
                rule = f"must be at most the limit of the pod, {resources['limits'][name]}; raise that"
                holder = f"{path}.{list_name}[{index}].resources.limits"
                yield FieldError(entry(holder, name), given[name], rule)


def check_pod_claims(path: str, spec: Mapping[str, Any]) -> Iterable[FieldError]:
    """Each claim has a name of its own in the pod, and is one that exists or one that is made; containers name those."""
    known: list[str] = [claim.get("name") or "" for claim in spec.get("resourceClaims") or []]
    for index, claim in enumerate(spec.get("resourceClaims") or []):
        where = f"{path}.resourceClaims[{index}]"
        yield from names.dns_label(f"{where}.name", known[index])
        if bool(claim.get("resourceClaimName")) == bool(claim.get("resourceClaimTemplateName")):
            yield FieldError(where, None, "needs either resourceClaimName or resourceClaimTemplateName")
    yield from names.distinct(f"{path}.resourceClaims[{{}}].name", known, "resource claims")
    for list_name in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(list_name) or []):
            for at, claim in enumerate((container.get("resources") or {}).get("claims") or []):
                if claim.get("name") not in known:
                    where = f"{path}.{list_name}[{index}].resources.claims[{at}].name"
                    yield FieldError(where, claim.get("name"), "names no claim of the pod; add it to resourceClaims")
