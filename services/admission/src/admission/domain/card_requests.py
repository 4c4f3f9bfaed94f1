"""By which names a pod asks for cards: one way for all of its containers, for the names count the same cards.

Sources: device plugins of NVIDIA (``nvidia.com/gpu``), Volcano (``volcano.sh/gpu-*``, ``volcano.sh/vgpu-*``) and Koordinator
(``koordinator.sh/gpu*``).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from admission.domain.errors import FieldError
from admission.domain.quantities import sound_amounts
from admission.domain.shapes import entry
from kube.card_names import CARD_MEMORY, GPU, VGPU_NUMBER, WHOLE_CARDS

VGPU = "volcano.sh/vgpu-"
WHOLE_NAMES = (*WHOLE_CARDS, CARD_MEMORY)
WAYS = (*WHOLE_NAMES, VGPU, GPU)
"""How the names begin; those with one beginning go together."""


def check_card_requests(path: str, spec: Mapping[str, Any]) -> Iterable[FieldError]:
    """No second way to ask for cards; no part of a virtual card without their number."""
    first = ""
    for list_name in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(list_name) or []):
            asked = _asked(f"{path}.{list_name}[{index}].resources", container.get("resources") or {})
            for name, where in asked.items():
                first = first or name
                if _way(name) != _way(first):
                    rule = f"asks for cards in another way than {first}; use one of the two in the whole pod"
                    yield FieldError(where, name, rule)
                elif name.startswith(VGPU) and VGPU_NUMBER not in asked:
                    yield FieldError(where, name, f"is of each virtual card: say how many with {VGPU_NUMBER}")


def _asked(path: str, resources: Mapping[str, Any]) -> dict[str, str]:
    """The names of cards that a container asks for, and where."""
    found: dict[str, str] = {}
    for part in ("limits", "requests"):
        for name, amount in sound_amounts(resources.get(part)).items():
            if amount and _way(name):
                found.setdefault(name, entry(f"{path}.{part}", name))
    return found


def _way(name: str) -> str:
    """The way in which a resource asks for cards, "" for other resources."""
    return next((way for way in WAYS if (name == way if way in WHOLE_NAMES else name.startswith(way))), "")
