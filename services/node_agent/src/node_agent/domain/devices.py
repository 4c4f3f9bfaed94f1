"""Which cards a container sees: the scheduler's choice for the pod, shared out to the containers that ask for them."""

import json

from kube import Manifest
from kube.environment import containers
from resources import QuantityError, parse_quantity

ANNOTATION = "tidegate.dev/devices"


def chosen_devices(pod: Manifest) -> dict[str, list[int]]:
    """The card indexes chosen for ``pod`` by resource name; empty when none were or the annotation cannot be read."""
    text = ((pod.get("metadata") or {}).get("annotations") or {}).get(ANNOTATION)
    try:
        read = json.loads(text) if text else {}
        return {str(name): [int(index) for index in indexes] for name, indexes in read.items()}
    except (ValueError, TypeError, AttributeError):
        return {}


def visible_devices(pod: Manifest, container: str) -> tuple[int, ...]:
    """The cards of one container, ascending.

    Where the containers' own requests add up to the number of cards, each takes its part in the order of the pod;
    otherwise (shares of cards, cards of the pod as a whole) every container that asks sees all of them, and if none
    asks, all do.
    """
    seen: set[int] = set()
    for name, indexes in chosen_devices(pod).items():
        asked = {str(item.get("name")): _count(item, name) for item in containers(pod)}
        if sum(asked.values()) == len(indexes):
            start = 0
            for other, count in asked.items():
                if other == container:
                    seen.update(indexes[start : start + count])
                start += count
        elif asked.get(container) or not any(asked.values()):
            seen.update(indexes)
    return tuple(sorted(seen))


def device_variables(pod: Manifest, container: str) -> dict[str, str]:
    """The variables that show a container its cards, and hide all others from one that has none."""
    cards = ",".join(str(index) for index in visible_devices(pod, container))
    return {
        "CUDA_VISIBLE_DEVICES": cards,
        "NVIDIA_VISIBLE_DEVICES": cards or "void",
        # CUDA's own order is fastest first; the indexes here are NVML's, which is the order on the bus.
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }


def _count(container: Manifest, resource: str) -> int:
    limits = (container.get("resources") or {}).get("limits") or {}
    requests = (container.get("resources") or {}).get("requests") or {}
    try:
        return parse_quantity(limits.get(resource) or requests.get(resource) or 0)
    except QuantityError:
        return 0
