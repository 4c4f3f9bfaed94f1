"""ResourceClaims and their templates: requests for devices that can be met at all, and by whom they may be made."""

from collections.abc import Iterable, Mapping
from typing import Any

from admission.domain.errors import FieldError
from admission.domain.quantities import check_amounts
from admission.domain.world import Review
from kube import Key

ADMIN_LABEL = "resource.kubernetes.io/admin-access"
MOST_DEVICES = 32
_MODES = ("", "ExactCount", "All")


def check_claim(review: Review) -> Iterable[FieldError]:
    """The requests are sound; what a claim asks for never changes."""
    yield from _check_devices("spec.devices", review.spec.get("devices"), review)
    if review.old is not None and review.old.spec != review.spec:
        yield FieldError("spec", None, "may not change; delete the claim and create it anew")


def check_template(review: Review) -> Iterable[FieldError]:
    """The same of the claims that are made from it."""
    spec = review.spec.get("spec")
    devices = spec.get("devices") if isinstance(spec, dict) else None
    yield from _check_devices("spec.spec.devices", devices, review)
    if review.old is not None and review.old.spec != review.spec:
        yield FieldError("spec", None, "may not change; create a template of another name")


def _check_devices(path: str, devices: Any, review: Review) -> Iterable[FieldError]:
    requests = devices.get("requests") if isinstance(devices, dict) else None
    if not isinstance(requests, list) or not requests:
        yield FieldError(f"{path}.requests", None, "a claim needs at least one request for devices")
        return
    seen: set[str] = set()
    for index, request in enumerate(requests):
        where = f"{path}.requests[{index}]"
        if not isinstance(request, dict):
            yield FieldError(where, request, "must be a mapping with name and exactly or firstAvailable")
            continue
        name = str(request.get("name") or "")
        if not name or name in seen:
            yield FieldError(f"{where}.name", name or None, "every request needs a name of its own")
        seen.add(name)
        exactly, choices = request.get("exactly"), request.get("firstAvailable")
        if (exactly is None) == (choices is None):
            yield FieldError(where, None, "needs either exactly or firstAvailable")
            continue
        for at, one in enumerate([exactly] if exactly is not None else choices or ()):
            part = f"{where}.exactly" if exactly is not None else f"{where}.firstAvailable[{at}]"
            yield from _check_ask(part, one, review)


def _check_ask(where: str, ask: Any, review: Review) -> Iterable[FieldError]:
    if not isinstance(ask, Mapping) or not ask.get("deviceClassName"):
        yield FieldError(f"{where}.deviceClassName", None, "name the class of the devices")
        return
    mode, count = str(ask.get("allocationMode") or ""), ask.get("count")
    if mode not in _MODES:
        yield FieldError(f"{where}.allocationMode", mode, "must be ExactCount or All")
    if count is not None and (mode == "All" or isinstance(count, bool) or not isinstance(count, int)):
        yield FieldError(f"{where}.count", count, "must be a whole number, and goes with ExactCount only")
    elif isinstance(count, int) and not 0 < count <= MOST_DEVICES:
        yield FieldError(f"{where}.count", count, f"must be from 1 to {MOST_DEVICES}, the most that a claim may have")
    amounts = capacity.get("requests") if isinstance(capacity := ask.get("capacity") or {}, Mapping) else capacity
    if isinstance(amounts, Mapping | None):
        yield from check_amounts(f"{where}.capacity.requests", amounts)
    else:
        yield FieldError(f"{where}.capacity.requests", amounts, "must be a mapping of capacities to quantities")
    if ask.get("adminAccess") and not _may_watch(review):
        rule = f"only in a namespace with the label {ADMIN_LABEL}=true: it reaches devices that others use"
        yield FieldError(f"{where}.adminAccess", True, rule)


def _may_watch(review: Review) -> bool:
    namespace = review.world.get(Key("Namespace", "", review.key.namespace))
    return namespace is not None and namespace.labels.get(ADMIN_LABEL) == "true"
