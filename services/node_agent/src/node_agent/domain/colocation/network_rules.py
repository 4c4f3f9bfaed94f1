"""What is asked of the network (``networkQOS`` of a class, ``totalNetworkBandwidth``), and what of the node it is about.

Rates are bits per second. A whole number is percent of what the uplink carries, a text an amount (``50M``).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from resources import QuantityError, parse_quantity


class Sorting(StrEnum):
    """How the kernel knows whose a packet is that a pod in the machine's own network sends."""

    PATH = "cgroup v2"
    CLASS_ID = "net_cls"
    ADDRESS = "address"
    """It does not: only pods with an address of their own are known."""


@dataclass(frozen=True, slots=True)
class Uplink:
    """The device by which packets leave the node. ``missing`` says what it lacks to be shared out; nothing is all right."""

    device: str = ""
    bits: int = 0
    """What it carries, where the hardware says so."""
    sorting: Sorting = Sorting.ADDRESS
    below: str = ""
    """The control group, as a path, in which those of the agent's layout stand."""
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Share:
    """An amount, or a part of the whole in percent."""

    bits: int = 0
    percent: int = 0

    def of(self, total: int) -> int:
        """In bits per second, never more than the whole."""
        return min(total, self.bits + total * self.percent // 100)


@dataclass(frozen=True, slots=True)
class NetworkRule:
    """What a class is guaranteed of what leaves the node, and the most that it may take; a limit of 0 is none."""

    request: Share = Share()
    limit: Share = Share(percent=100)
    inward: bool = False
    """Whether something is asked for what comes in, too."""


def network_rule(part: Mapping[str, Any]) -> NetworkRule:
    """The rule that a ``networkQOS`` tells."""
    request, limit = _direction(part, "egress")
    return NetworkRule(
        request, limit, _direction(part, "ingress") not in ((Share(), Share(percent=100)), (Share(), Share()))
    )


def _direction(part: Mapping[str, Any], name: str) -> tuple[Share, Share]:
    """What is guaranteed and the most; by itself nothing and all."""
    return _share(part.get(f"{name}Request"), Share()), _share(part.get(f"{name}Limit"), Share(percent=100))


def bandwidth(value: object) -> int:
    """``totalNetworkBandwidth``; 0 where nothing is said, or nothing that can be read."""
    return _share(str(value), Share()).bits


def _share(value: object, otherwise: Share) -> Share:
    try:
        if isinstance(value, int | float):
            return Share(percent=max(0, min(100, int(value))))
        return otherwise if value is None else Share(bits=max(0, parse_quantity(str(value))))
    except (OverflowError, QuantityError, ValueError):
        return otherwise
