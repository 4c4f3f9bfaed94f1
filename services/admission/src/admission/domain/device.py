"""Koordinator's Devices: the cards of a node, as who has looked at them says."""

from collections.abc import Iterable

from admission.domain.errors import FieldError
from admission.domain.quantities import MOST_CARDS, check_amounts
from admission.domain.shapes import AMOUNTS, TEXT, TEXT_MAP, TRUTH, WHOLE, Idle, ListOf, fields, within
from admission.domain.world import Review

DEVICE_SPEC = fields(
    devices=ListOf(
        fields(
            type=TEXT,
            minor=WHOLE,
            health=TRUTH,
            id=TEXT,
            moduleID=Idle(WHOLE),
            labels=TEXT_MAP,
            resources=AMOUNTS,
            topology=fields(socketID=Idle(WHOLE), nodeID=WHOLE, pcieID=TEXT, busID=Idle(TEXT)),
        )
    )
)


def check_device(review: Review) -> Iterable[FieldError]:
    """Cards are numbered, and what they have are quantities."""
    for index, device in enumerate(review.spec.get("devices") or []):
        yield from within(f"spec.devices[{index}].minor", device.get("minor"), 0, MOST_CARDS)
        yield from check_amounts(f"spec.devices[{index}].resources", device.get("resources"))
