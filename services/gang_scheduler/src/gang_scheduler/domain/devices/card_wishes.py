"""Which cards a pod wants, besides how many: models and cards by name (Volcano's and HAMi's annotations), one NUMA node or
PCIe switch, labels, partitions (Koordinator's)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Any

from gang_scheduler.domain.devices.cards import Card
from kube.json_text import read_json
from kube.selectors import SelectorError, matches
from resources import QuantityError, parse_quantity

USE_TYPE, AVOID_TYPE = "nvidia.com/use-gputype", "nvidia.com/nouse-gputype"
USE_CARD, AVOID_CARD = "nvidia.com/use-gpuuuid", "nvidia.com/nouse-gpuuuid"
HINT, PARTITION_SPEC = "scheduling.koordinator.sh/device-allocate-hint", "scheduling.koordinator.sh/gpu-partition-spec"
WISHES = frozenset({USE_TYPE, AVOID_TYPE, USE_CARD, AVOID_CARD, HINT, PARTITION_SPEC})


class Scope(IntEnum):
    """Within what all cards of a pod have to be."""

    NODE = 0
    NUMA_NODE = 1
    PCIE = 2


_SCOPES = {"numanode": Scope.NUMA_NODE, "pcie": Scope.PCIE}


@dataclass(frozen=True, slots=True)
class PartitionWish:
    """A partition that has ``bandwidth`` at least; ``restricted``: only one of the best."""

    restricted: bool = False
    bandwidth: int = 0


@dataclass(frozen=True, slots=True)
class CardWish:
    """Parts of names of models are in upper case; ``selector`` is a label selector as JSON."""

    use_types: tuple[str, ...] = ()
    avoid_types: tuple[str, ...] = ()
    use_cards: tuple[str, ...] = ()
    avoid_cards: tuple[str, ...] = ()
    selector: str = ""
    scope: Scope = Scope.NODE
    partition: PartitionWish | None = None

    def allows(self, card: Card) -> bool:
        """Whether the pod may have the card, or a part of it."""
        model = card.model.upper()
        return (
            (not self.use_types or any(part in model for part in self.use_types))
            and not any(part in model for part in self.avoid_types)
            and (not self.use_cards or card.uuid in self.use_cards)
            and card.uuid not in self.avoid_cards
            and (not self.selector or _selected(self.selector, card.labels))
        )

    @property
    def words(self) -> str:
        """The wish as people are told it."""
        parts = [f"of a model like {' or '.join(self.use_types)}"] if self.use_types else []
        parts += [f"of no model like {' or '.join(self.avoid_types)}"] if self.avoid_types else []
        parts += [f"named {' or '.join(self.use_cards)}"] if self.use_cards else []
        parts += [f"not named {' or '.join(self.avoid_cards)}"] if self.avoid_cards else []
        parts += [f"with labels by {self.selector}"] if self.selector else []
        parts += ["on one NUMA node"] if self.scope is Scope.NUMA_NODE else []
        parts += ["behind one PCIe switch"] if self.scope is Scope.PCIE else []
        if self.partition:
            parts.append("that are one of the best partitions" if self.partition.restricted else "that are a partition")
            parts += [f"with a bandwidth of {self.partition.bandwidth}"] if self.partition.bandwidth else []
        return " ".join(parts)


def wish_of(annotations: Mapping[str, str]) -> CardWish | None:
    """What a pod's annotations wish; None where they wish nothing. What cannot be read is no wish."""
    if WISHES.isdisjoint(annotations):
        return None
    hint = _object(_object(annotations.get(HINT)).get("gpu"))
    selector = hint.get("selector")
    wish = CardWish(
        _listed(annotations.get(USE_TYPE, "").upper()),
        _listed(annotations.get(AVOID_TYPE, "").upper()),
        _listed(annotations.get(USE_CARD, "")),
        _listed(annotations.get(AVOID_CARD, "")),
        json.dumps(selector, sort_keys=True) if selector else "",
        _SCOPES.get(str(hint.get("requiredTopologyScope") or "").lower(), Scope.NODE),
        _partition(annotations.get(PARTITION_SPEC)),
    )
    return None if wish == CardWish() else wish


def _partition(text: str | None) -> PartitionWish | None:
    if text is None:
        return None
    spec = _object(text)
    try:
        bandwidth = parse_quantity(spec.get("ringBusBandwidth") or 0)
    except QuantityError:
        bandwidth = 0
    return PartitionWish(spec.get("allocatePolicy") == "Restricted", bandwidth)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(sorted(filter(None, (part.strip() for part in text.split(",")))))


def _object(said: Any) -> Mapping[str, Any]:
    """A mapping, or one written as JSON; an empty one for anything else."""
    try:
        read = read_json(said) if isinstance(said, str) else said
    except ValueError:
        return {}
    return read if isinstance(read, Mapping) else {}


@lru_cache(maxsize=1024)
def _selected(selector: str, labels: tuple[tuple[str, str], ...]) -> bool:
    try:
        return matches(read_json(selector), dict(labels))
    except (AttributeError, SelectorError, TypeError):
        return False
