"""Reservations of Koordinator: room held for those who come later."""

from collections.abc import Iterable
from typing import Any

from admission.domain import names
from admission.domain.containers import check_resources
from admission.domain.errors import FieldError
from admission.domain.job_policies import check_duration
from admission.domain.pod_placement import EFFECTS, check_placement
from admission.domain.pod_template import POD_TEMPLATE, default_template
from admission.domain.priority import resolve_priority
from admission.domain.selectors import SELECTOR, check_selector
from admission.domain.shapes import TEXT, TRUTH, ListOf, closed, one_of
from admission.domain.world import Review
from kube import parse_time

_OBJECT = closed(apiVersion=TEXT, kind=TEXT, namespace=TEXT, name=TEXT, uid=TEXT)
RESERVATION_SPEC = closed(
    template=POD_TEMPLATE,
    owners=ListOf(
        closed(
            object=_OBJECT,
            controller=closed(
                apiVersion=TEXT,
                kind=TEXT,
                namespace=TEXT,
                name=TEXT,
                uid=TEXT,
                controller=TRUTH,
                blockOwnerDeletion=TRUTH,
            ),
            labelSelector=SELECTOR,
        )
    ),
    ttl=TEXT,
    expires=TEXT,
    preAllocation=TRUTH,
    preAllocationPolicy=closed(mode=TEXT, enableMultiple=TRUTH),
    allocateOnce=TRUTH,
    allocatePolicy=TEXT,
    unschedulable=TRUTH,
    taints=ListOf(closed(key=TEXT, value=TEXT, effect=TEXT)),
)
POLICIES = ("Default", "Aligned", "Restricted")
MODES = ("Default", "Cluster")
OWNER_PARTS = ("object", "controller", "labelSelector")
DEFAULT_TTL = "24h"


def default_reservation(review: Review) -> None:
    """As upstream: for a day, for one owner; what the template's containers are limited to they also ask for."""
    spec = review.spec
    if not spec.get("expires"):
        spec.setdefault("ttl", DEFAULT_TTL)
    spec.setdefault("allocateOnce", True)
    spec.setdefault("allocatePolicy", "Aligned")
    default_template(spec.get("template") or {})
    pod = (spec.get("template") or {}).get("spec")
    if pod:
        resolve_priority(review.world, pod)


def check_reservation(review: Review) -> Iterable[FieldError]:
    """It says what is held, for whom, and for how long."""
    spec = review.spec
    yield from _check_template((spec.get("template") or {}).get("spec"))
    owners = spec.get("owners") or []
    if not owners:
        yield FieldError("spec.owners", None, "is required; say whose room it is")
    for index, owner in enumerate(owners):
        if not any(owner.get(part) is not None for part in OWNER_PARTS):
            yield FieldError(f"spec.owners[{index}]", owner, f"must name one of {', '.join(OWNER_PARTS)}")
        yield from check_selector(f"spec.owners[{index}].labelSelector", owner.get("labelSelector"))
    yield from one_of("spec.allocatePolicy", spec.get("allocatePolicy") or POLICIES[0], POLICIES)
    mode = (spec.get("preAllocationPolicy") or {}).get("mode")
    yield from one_of("spec.preAllocationPolicy.mode", mode or MODES[0], MODES)
    if spec.get("ttl"):
        yield from check_duration("spec.ttl", spec["ttl"])
    yield from _check_expiry(spec.get("expires"))
    for index, taint in enumerate(spec.get("taints") or []):
        yield from names.qualified_name(f"spec.taints[{index}].key", taint.get("key") or "")
        yield from one_of(f"spec.taints[{index}].effect", taint.get("effect") or "", EFFECTS)


def _check_template(pod: Any) -> Iterable[FieldError]:
    """Nothing runs, so a container needs neither name nor image."""
    if not pod or not pod.get("containers"):
        yield FieldError("spec.template.spec.containers", None, "is required; say what is to be held")
        return
    for part in ("containers", "initContainers"):
        for index, container in enumerate(pod.get(part) or []):
            path = f"spec.template.spec.{part}[{index}].resources"
            yield from check_resources(path, container.get("resources") or {})
    yield from check_placement("spec.template.spec", pod)


def _check_expiry(text: Any) -> Iterable[FieldError]:
    try:
        if text:
            parse_time(text)
    except ValueError:
        yield FieldError("spec.expires", text, "must be a time such as 2026-01-31T12:00:00Z")
