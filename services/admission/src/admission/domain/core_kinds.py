"""Small kinds of Kubernetes: ConfigMap, Secret, Service, Namespace, disruption budgets."""

import base64
import binascii
from collections.abc import Iterable

from admission.domain import names
from admission.domain.changes import fixed
from admission.domain.errors import FieldError
from admission.domain.selectors import SELECTOR, check_selector
from admission.domain.shapes import (
    EITHER,
    TEXT,
    TEXT_MAP,
    TRUTH,
    WHOLE,
    ListOf,
    entry,
    fields,
    one_of,
    within,
)
from admission.domain.world import Review, World
from kube import Object

CONFIG_MAP = fields(data=TEXT_MAP, binaryData=TEXT_MAP, immutable=TRUTH)
SECRET = fields(data=TEXT_MAP, stringData=TEXT_MAP, type=TEXT, immutable=TRUTH)
SERVICE_SPEC = fields(
    type=TEXT,
    clusterIP=TEXT,
    selector=TEXT_MAP,
    externalName=TEXT,
    publishNotReadyAddresses=TRUTH,
    ports=ListOf(fields(name=TEXT, port=WHOLE, targetPort=EITHER, nodePort=WHOLE, protocol=TEXT)),
)
BUDGET_SPEC = fields(minAvailable=EITHER, maxUnavailable=EITHER, selector=SELECTOR)
KEPT_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
SERVICE_TYPES = ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName")


def check_config_map(review: Review) -> Iterable[FieldError]:
    """Keys can be file names, and an immutable map stays."""
    for part in ("data", "binaryData"):
        for key in review.manifest.get(part) or {}:
            yield from names.data_key(entry(part, key), key)
    yield from _check_immutable(review, ("data", "binaryData"))


SECRET_IS_FIXED = "may not change: the secret is immutable; delete it and create it anew"


def default_secret(review: Review) -> None:
    """``stringData`` moves into ``data``, in base64; the type is Opaque."""
    manifest = review.manifest
    manifest.setdefault("type", "Opaque")
    for key, text in (manifest.pop("stringData", None) or {}).items():
        manifest.setdefault("data", {})[key] = base64.b64encode(text.encode()).decode()


def check_secret(review: Review) -> Iterable[FieldError]:
    """Keys can be file names, values are base64; no value is ever part of a message."""
    for key, value in (review.manifest.get("data") or {}).items():
        yield from names.data_key(entry("data", key), key)
        try:
            base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            yield FieldError(entry("data", key), None, "must be base64; put plain text under stringData instead")
    # Values are compared where they are kept; here they are not seen.
    keys = [set(data or {}) for data in (review.before("data"), review.manifest.get("data"))]
    if review.old is not None and review.before("immutable") and keys[0] != keys[1]:
        yield FieldError("data", None, SECRET_IS_FIXED)


def _check_immutable(review: Review, parts: Iterable[str]) -> Iterable[FieldError]:
    if review.old is not None and review.before("immutable"):
        for part in (*parts, "immutable"):
            way_out = "the object is immutable; delete it and create it anew"
            yield from fixed(part, review.before(part), review.manifest.get(part), way_out)


def default_service(review: Review) -> None:
    """A ClusterIP service with TCP ports that lead to the same number."""
    spec = review.spec
    spec.setdefault("type", "ClusterIP")
    for port in spec.get("ports") or []:
        port.setdefault("protocol", "TCP")
        if "port" in port:
            port.setdefault("targetPort", port["port"])


def check_service(review: Review) -> Iterable[FieldError]:
    """A service has ports, unless it only gives names; several ports have names."""
    spec, ports = review.spec, review.spec.get("ports") or []
    yield from one_of("spec.type", spec["type"], SERVICE_TYPES)
    if not ports and spec.get("clusterIP") != "None" and spec["type"] != "ExternalName":
        yield FieldError("spec.ports", None, "a service needs ports; add one, or make it headless by clusterIP: None")
    if spec["type"] == "ExternalName" and not spec.get("externalName"):
        yield FieldError("spec.externalName", None, "is required with type ExternalName")
    for index, port in enumerate(ports):
        yield from within(f"spec.ports[{index}].port", port.get("port", 0), 1, 65_535)
        if len(ports) > 1 and not port.get("name"):
            yield FieldError(f"spec.ports[{index}].name", None, "is required where there are several ports")
    yield from names.distinct("spec.ports[{}].name", [port.get("name") or "" for port in ports], "ports")
    yield from names.labels("spec.selector", spec.get("selector") or {})


def check_namespace_delete(old: Object, world: World) -> Iterable[FieldError]:
    if old.name in KEPT_NAMESPACES:
        yield FieldError("metadata.name", old.name, f"namespace {old.name} always exists and cannot be deleted")


def check_budget(review: Review) -> Iterable[FieldError]:
    """A disruption budget gives one bound, as a number or a percentage."""
    spec = review.spec
    given = [name for name in ("minAvailable", "maxUnavailable") if name in spec]
    if len(given) > 1:
        yield FieldError("spec.maxUnavailable", spec["maxUnavailable"], "give minAvailable or maxUnavailable, not both")
    for name in given:
        value = spec[name]
        number = str(value).removesuffix("%") if isinstance(value, str) else str(value)
        if not number.isdigit() or (isinstance(value, str) and (not value.endswith("%") or int(number) > 100)):
            yield FieldError(f"spec.{name}", value, "must be a number from 0 on, or 0% to 100%")
    yield from check_selector("spec.selector", spec.get("selector"))
