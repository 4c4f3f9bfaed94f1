"""The forms that arguments of strategies have: each is a reader that returns the value, or raises ValueError saying what is wrong."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from descheduler.domain.policy.arguments import known, percentages
from kube import Manifest

Reader = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes of CustomPriority. Shares are in thousandths of a percent of what may be asked for."""

    name: str
    selector: Manifest | None
    keep: Mapping[str, int] = field(default_factory=dict)
    reject: Mapping[str, int] = field(default_factory=dict)


def anything(value: Any) -> Any:
    """What is read elsewhere, into a scope of pods and nodes."""
    return value


def whole(value: Any) -> int:
    """A whole number, 0 or above."""
    found = int(value)
    if isinstance(value, bool) or found < 0:
        raise ValueError("it has to be a whole number, 0 or above")
    return found


def truth(value: Any) -> bool:
    """``true`` or ``false``."""
    if not isinstance(value, bool):
        raise ValueError("it has to be true or false")
    return value


def texts(value: Any) -> tuple[str, ...]:
    """A list of texts."""
    if not isinstance(value, list | tuple):
        raise ValueError("it has to be a list")
    return tuple(str(one) for one in value)


def wholes(value: Any) -> tuple[int, ...]:
    """A list of whole numbers."""
    return tuple(map(whole, value))


def number(value: Any) -> Fraction:
    """A number, 0 or above."""
    found = Fraction(str(value))
    if found < 0:
        raise ValueError("it has to be 0 or above")
    return found


def map_of_numbers(value: Any) -> dict[str, Fraction]:
    """Numbers by name."""
    return {str(name): number(one) for name, one in sorted(value.items())}


def one_of(*values: str) -> Reader:
    """One of these texts."""

    def read(value: Any) -> str:
        if value not in values:
            raise ValueError(f"it has to be one of {', '.join(values)}")
        return str(value)

    return read


def exactly(only: Any, why: str) -> Reader:
    """This value and no other."""

    def read(value: Any) -> Any:
        if value != only:
            raise ValueError(why)
        return value

    return read


def nodes_only(value: Any) -> int:
    """``evictionLimits``: how many may leave one node in a round."""
    known(value, ("node",), "evictionLimits")
    return whole(value["node"])


def eviction_order(value: Any) -> tuple[NodeGroup, ...]:
    """Groups of nodes, the expensive ones first."""
    found = []
    for one in value:
        known(one, ("name", "nodeSelector", "keepThreshold", "rejectThreshold"), "evictionOrder")
        keep, reject = percentages(one.get("keepThreshold")), percentages(one.get("rejectThreshold"))
        found.append(NodeGroup(str(one.get("name") or ""), one.get("nodeSelector"), keep, reject))
    if len(found) < 2:
        raise ValueError("it takes two groups or more to move pods from one to the next")
    return tuple(found)
