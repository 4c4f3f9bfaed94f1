"""ResourceClaims, their templates and classes: requests for devices that can be met at all, and by whom they may be made."""

from collections.abc import Iterable, Mapping
from typing import Any

from admission.domain.errors import FieldError
from admission.domain.object_meta import TEMPLATE_METADATA
from admission.domain.pod_placement import TOLERATION, check_toleration
from admission.domain.quantities import check_amounts
from admission.domain.shapes import AMOUNTS, MAPPING, TEXT, TEXTS, TRUTH, WHOLE, ListOf, Shape, fields
from admission.domain.world import Review
from kube import Key

_SELECTORS = ListOf(fields(cel=fields(expression=TEXT)))
_ASK: dict[str, Shape] = {
    "deviceClassName": TEXT,
    "selectors": _SELECTORS,
    "allocationMode": TEXT,
    "count": WHOLE,
    "adminAccess": TRUTH,
    "tolerations": ListOf(TOLERATION),
    "capacity": fields(requests=AMOUNTS),
}
CLAIM_SPEC = fields(
    devices=fields(
        requests=ListOf(fields(name=TEXT, exactly=fields(**_ASK), firstAvailable=ListOf(fields(name=TEXT, **_ASK)))),
        constraints=ListOf(fields(requests=TEXTS, matchAttribute=TEXT, distinctAttribute=TEXT)),
        config=ListOf(MAPPING),
    )
)
TEMPLATE_SPEC = fields(metadata=TEMPLATE_METADATA, spec=CLAIM_SPEC)
CLASS_SPEC = fields(selectors=_SELECTORS)

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
    yield from _check_devices("spec.spec.devices", (review.spec.get("spec") or {}).get("devices"), review)
    if review.old is not None and review.old.spec != review.spec:
        yield FieldError("spec", None, "may not change; create a template of another name")


def _check_devices(path: str, devices: Mapping[str, Any] | None, review: Review) -> Iterable[FieldError]:
    if not devices or not devices.get("requests"):
        yield FieldError(f"{path}.requests", None, "a claim needs at least one request for devices")
        return
    seen: set[str] = set()
    for index, request in enumerate(devices["requests"]):
        where = f"{path}.requests[{index}]"
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
    for index, constraint in enumerate(devices.get("constraints") or ()):
        yield from _check_constraint(f"{path}.constraints[{index}]", constraint, seen)


def _check_ask(where: str, ask: Mapping[str, Any], review: Review) -> Iterable[FieldError]:
    if not ask.get("deviceClassName"):
        yield FieldError(f"{where}.deviceClassName", None, "name the class of the devices")
        return
    mode, count = str(ask.get("allocationMode") or ""), ask.get("count")
    if mode not in _MODES:
        yield FieldError(f"{where}.allocationMode", mode, "must be ExactCount or All")
    if count is not None and mode == "All":
        yield FieldError(f"{where}.count", count, "goes with ExactCount only; All takes every device that matches")
    elif count is not None and not 0 < count <= MOST_DEVICES:
        yield FieldError(f"{where}.count", count, f"must be from 1 to {MOST_DEVICES}, the most that a claim may have")
    yield from check_amounts(f"{where}.capacity.requests", (ask.get("capacity") or {}).get("requests"))
    for at, toleration in enumerate(ask.get("tolerations") or ()):
        yield from check_toleration(f"{where}.tolerations[{at}]", toleration)
    if ask.get("adminAccess") and not _may_watch(review):
        rule = f"only in a namespace with the label {ADMIN_LABEL}=true: it reaches devices that others use"
        yield FieldError(f"{where}.adminAccess", True, rule)


def _check_constraint(where: str, constraint: Mapping[str, Any], requests: set[str]) -> Iterable[FieldError]:
    """It is about one attribute, and about requests that are there; a choice of one is named behind a slash."""
    given = [name for name in ("matchAttribute", "distinctAttribute") if constraint.get(name)]
    if len(given) != 1:
        yield FieldError(where, ", ".join(given) or None, "needs either matchAttribute or distinctAttribute")
    for at, name in enumerate(constraint.get("requests") or ()):
        if name.partition("/")[0] not in requests:
            yield FieldError(
                f"{where}.requests[{at}]", name, "is the name of no request; name one, or leave the list out"
            )


def _may_watch(review: Review) -> bool:
    namespace = review.world.get(Key("Namespace", "", review.key.namespace))
    return namespace is not None and namespace.labels.get(ADMIN_LABEL) == "true"
