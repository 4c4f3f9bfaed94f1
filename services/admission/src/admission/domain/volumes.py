"""Volumes: claims, the volumes that they are bound to, and the classes that say how."""

from collections.abc import Iterable, Mapping
from typing import Any

from admission.domain.changes import fixed
from admission.domain.errors import FieldError
from admission.domain.object_meta import TEMPLATE_METADATA
from admission.domain.pod_placement import NODE_TERM
from admission.domain.quantities import check_amounts
from admission.domain.selectors import SELECTOR, check_selector
from admission.domain.shapes import AMOUNTS, TEXT, TEXT_MAP, TEXTS, TRUTH, ListOf, fields, one_of
from admission.domain.world import Review

CLAIM_SPEC = fields(
    accessModes=TEXTS,
    resources=fields(requests=AMOUNTS, limits=AMOUNTS),
    storageClassName=TEXT,
    volumeName=TEXT,
    volumeMode=TEXT,
    selector=SELECTOR,
)
VOLUME_SPEC = fields(
    capacity=AMOUNTS,
    accessModes=TEXTS,
    storageClassName=TEXT,
    volumeMode=TEXT,
    persistentVolumeReclaimPolicy=TEXT,
    claimRef=fields(namespace=TEXT, name=TEXT, uid=TEXT),
    nodeAffinity=fields(required=fields(nodeSelectorTerms=ListOf(NODE_TERM))),
    hostPath=fields(path=TEXT, type=TEXT),
    local=fields(path=TEXT, fsType=TEXT),
)
CLASS = fields(
    provisioner=TEXT,
    volumeBindingMode=TEXT,
    reclaimPolicy=TEXT,
    parameters=TEXT_MAP,
    allowVolumeExpansion=TRUTH,
    allowedTopologies=ListOf(fields(matchLabelExpressions=ListOf(fields(key=TEXT, values=TEXTS)))),
)
CLAIM_TEMPLATE = fields(metadata=TEMPLATE_METADATA, spec=CLAIM_SPEC)
"""What a claim is made from."""
ACCESS_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")


def check_volume_claim(review: Review) -> Iterable[FieldError]:
    """A claim says how it is mounted and how much it holds."""
    spec = review.spec
    if not spec.get("accessModes"):
        yield FieldError("spec.accessModes", None, f"is required; give one of {', '.join(ACCESS_MODES)}")
    if "storage" not in ((spec.get("resources") or {}).get("requests") or {}):
        yield FieldError("spec.resources.requests.storage", None, "is required; say how much the volume holds")
    yield from check_claim_spec("spec", spec)
    for name in ("accessModes", "storageClassName", "volumeMode", "selector"):
        if review.old is not None and name in spec and review.before("spec", name) is not None:
            yield from fixed(f"spec.{name}", review.before("spec", name), spec[name], "make another claim")


def check_claim_spec(path: str, spec: Mapping[str, Any]) -> Iterable[FieldError]:
    """What a claim says makes sense; for claims, and for what claims are made from."""
    yield from _check_modes(f"{path}.accessModes", spec.get("accessModes") or [])
    yield from check_amounts(f"{path}.resources.requests", (spec.get("resources") or {}).get("requests"))
    yield from check_selector(f"{path}.selector", spec.get("selector"))


def _check_modes(path: str, modes: list[str]) -> Iterable[FieldError]:
    """They are known; and who wants a volume for one pod alone cannot want it for several."""
    for index, mode in enumerate(modes):
        yield from one_of(f"{path}[{index}]", mode, ACCESS_MODES)
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        yield FieldError(path, modes, "ReadWriteOncePod may not stand beside other modes")


def default_volume(review: Review) -> None:
    """A volume that somebody made is kept when its claim goes."""
    review.spec.setdefault("persistentVolumeReclaimPolicy", "Retain")


def check_volume(review: Review) -> Iterable[FieldError]:
    """A volume says how much it holds, and how it is mounted."""
    spec = review.spec
    modes = spec.get("accessModes") or []
    if not modes:
        yield FieldError("spec.accessModes", None, f"is required; give one of {', '.join(ACCESS_MODES)}")
    yield from _check_modes("spec.accessModes", modes)
    if "storage" not in (spec.get("capacity") or {}):
        yield FieldError("spec.capacity.storage", None, "is required; say how much the volume holds")
    yield from check_amounts("spec.capacity", spec.get("capacity") or {})
    yield from one_of(
        "spec.persistentVolumeReclaimPolicy", spec["persistentVolumeReclaimPolicy"], ("Retain", "Delete", "Recycle")
    )


def default_storage_class(review: Review) -> None:
    """As in Kubernetes: claims are bound at once, and what was made for them goes with them."""
    review.manifest.setdefault("volumeBindingMode", "Immediate")
    review.manifest.setdefault("reclaimPolicy", "Delete")


def check_storage_class(review: Review) -> Iterable[FieldError]:
    """A class names who makes its volumes; what it says of them stays."""
    manifest = review.manifest
    if not manifest.get("provisioner"):
        yield FieldError("provisioner", None, "is required; kubernetes.io/no-provisioner for volumes made by hand")
    yield from one_of("volumeBindingMode", manifest["volumeBindingMode"], ("Immediate", "WaitForFirstConsumer"))
    yield from one_of("reclaimPolicy", manifest["reclaimPolicy"], ("Delete", "Retain"))
    for part in ("provisioner", "volumeBindingMode", "reclaimPolicy", "parameters") if review.old is not None else ():
        way_out = "a class stays as it is; make another one"
        yield from fixed(part, review.before(part), manifest.get(part), way_out)
