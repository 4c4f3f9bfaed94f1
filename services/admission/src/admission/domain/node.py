"""Nodes that are declared by hand: what they have, and what keeps pods off them."""

from collections.abc import Iterable

from admission.domain import names
from admission.domain.errors import FieldError
from admission.domain.pod_placement import EFFECTS
from admission.domain.quantities import check_amounts, check_sizes
from admission.domain.shapes import AMOUNTS, TEXT, TRUTH, ListOf, fields, one_of
from admission.domain.world import Review

NODE_SPEC = fields(
    unschedulable=TRUTH, providerID=TEXT, podCIDR=TEXT, taints=ListOf(fields(key=TEXT, value=TEXT, effect=TEXT))
)
NODE_STATUS = fields(
    capacity=AMOUNTS,
    allocatable=AMOUNTS,
    conditions=ListOf(fields(type=TEXT, status=TEXT, reason=TEXT, message=TEXT)),
    addresses=ListOf(fields(type=TEXT, address=TEXT)),
)


def check_node(review: Review) -> Iterable[FieldError]:
    """Taints have a key and a known effect, and resources are quantities."""
    for index, taint in enumerate(review.spec.get("taints") or []):
        yield from names.qualified_name(f"spec.taints[{index}].key", taint.get("key") or "")
        yield from one_of(f"spec.taints[{index}].effect", taint.get("effect") or "", EFFECTS)
    status = review.manifest.get("status") or {}
    for part in ("capacity", "allocatable"):
        yield from check_amounts(f"status.{part}", status.get(part))
        yield from check_sizes(f"status.{part}", status.get(part))
