"""What the annotations of Kueue's topology-aware scheduling ask of a pod set: how near to each other its pods have to be.

https://kueue.sigs.k8s.io/docs/concepts/topology_aware_scheduling
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeVar

PODSET = "kueue.x-k8s.io/podset-"
"""What all these annotations begin with."""


class Nearness(StrEnum):
    """How much a pod set wants to be in one domain of a level."""

    REQUIRED = "required"
    PREFERRED = "preferred"
    UNCONSTRAINED = "unconstrained"


class PodSetAsk(NamedTuple):
    """All pods of a set inside one domain of ``level``; each ``slice_size`` of them inside one of ``slice_level``."""

    nearness: Nearness = Nearness.UNCONSTRAINED
    level: str = ""
    slice_level: str = ""
    slice_size: int = 1
    group: str = ""
    """Pod sets of one group go to one domain together."""

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels that it names."""
        return tuple(name for name in (self.level, self.slice_level) if name)


NO_WISH = PodSetAsk()


class Asking(Protocol):
    """A pod set: ``requests`` are what each of its pods asks for, by resource in the order of their names."""

    @property
    def ask(self) -> PodSetAsk: ...

    @property
    def role(self) -> str: ...

    @property
    def requests(self) -> tuple[tuple[str, int], ...]: ...


Set = TypeVar("Set", bound=Asking)


def ask_of(annotations: Mapping[str, str]) -> PodSetAsk:
    """What ``annotations`` ask for; a slice size that is no number from 1 on counts as 1."""
    for nearness in (Nearness.REQUIRED, Nearness.PREFERRED):
        level = annotations.get(f"{PODSET}{nearness}-topology")
        if level:
            break
    else:
        nearness, level = Nearness.UNCONSTRAINED, ""
    slice_level, size = (
        annotations.get(PODSET + "slice-required-topology", ""),
        annotations.get(PODSET + "slice-size", ""),
    )
    whole = max(1, int(size)) if slice_level and size.isdecimal() else 1
    return PodSetAsk(nearness, level, slice_level, whole, annotations.get(PODSET + "group-name", "") if level else "")


def units(counts: Mapping[Set, int]) -> list[list[Set]]:
    """The sets that are laid out together, in the order in which that is done; ``counts`` are their pods.

    Those of one group are, and those of one role that ask for the same place, though not for the same resources. The larger
    ones go first, as they are hardest to place: units by all their pods, and in a unit the sets by theirs.
    """
    found: dict[object, list[Set]] = {}
    for podset in sorted(counts, key=lambda item: (-counts[item], item.requests, item.role)):
        found.setdefault(podset.ask.group or (podset.role, podset.ask), []).append(podset)
    return sorted(found.values(), key=lambda unit: -sum(counts[podset] for podset in unit))
