"""The RDMA devices of a node, and which of them a pod gets: near its cards if it asks for that.

Koordinator's annotation ``scheduling.koordinator.sh/device-joint-allocate`` names the kinds of devices that belong together;
under ``requiredScope: SamePCIe`` the pod's cards and RDMA devices are behind the very same PCIe switches.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import combinations
from typing import Any

from gang_scheduler.domain.devices.cards import NO_CELL
from kube.json_text import read_json
from resources import Amounts

RDMA = "koordinator.sh/rdma"
JOINT = "scheduling.koordinator.sh/device-joint-allocate"
WHOLE = 100
MOST_SWITCHES = 10


class Joint(IntEnum):
    """How near the RDMA devices have to be to the cards: anywhere, as near as can be, behind the same switches."""

    NONE = 0
    NEAR = 1
    SAME_PCIE = 2


@dataclass(frozen=True, slots=True)
class Nic:
    """One RDMA device; ``pcie`` is the switch that it is behind, "" where that is not known."""

    index: int
    pcie: str = ""
    cell: int = NO_CELL


@dataclass(frozen=True, slots=True)
class NicNeed:
    """``count`` devices, ``share`` percent of each."""

    count: int
    share: int = WHOLE
    joint: Joint = Joint.NONE


def nic_need(requests: Amounts, joint: Joint) -> NicNeed | None:
    """What a request in percent means: whole devices in hundreds, else a part of one."""
    percent = requests.get(RDMA, 0)
    if not percent:
        return None
    if percent % WHOLE == 0:
        return NicNeed(percent // WHOLE, WHOLE, joint)
    count = -(-percent // WHOLE)
    return NicNeed(count, -(-percent // count), joint)


def joint_of(text: str | None) -> Joint:
    """What a pod's annotation asks for; NONE when it cannot be read or does not speak of cards and RDMA."""
    if text is None:
        return Joint.NONE
    try:
        read = read_json(text)
        if not {"gpu", "rdma"} <= set(read.get("deviceTypes") or ()):
            return Joint.NONE
        return Joint.SAME_PCIE if read.get("requiredScope") == "SamePCIe" else Joint.NEAR
    except (ValueError, AttributeError, TypeError):
        return Joint.NONE


def nics_of(devices: Sequence[Mapping[str, Any]]) -> tuple[Nic, ...]:
    """The healthy ones among the devices that Koordinator's agent describes."""
    found = []
    for one in devices:
        if one.get("type") == "rdma" and isinstance(one.get("minor"), int) and one.get("health") is not False:
            topology = one.get("topology") or {}
            cell = topology.get("nodeID")
            found.append(
                Nic(one["minor"], str(topology.get("pcieID") or ""), cell if isinstance(cell, int) else NO_CELL)
            )
    return tuple(sorted(found, key=lambda nic: nic.index))


def pick(
    nics: Sequence[Nic], free: Mapping[int, int], need: NicNeed, switches: frozenset[str]
) -> tuple[int, ...] | None:
    """The indexes of devices with enough free, one behind each of ``switches`` first; None when they are too few.

    Parts come from the fullest devices that still hold them.
    """
    fitting = sorted(
        (nic for nic in nics if free[nic.index] >= need.share), key=lambda nic: (free[nic.index], nic.index)
    )
    first = {switch: next((nic for nic in fitting if nic.pcie == switch), None) for switch in sorted(switches)}
    chosen = [nic for nic in first.values() if nic is not None]
    if len(chosen) < len(switches) or len(chosen) > need.count:
        return None
    chosen += [nic for nic in fitting if nic not in chosen][: need.count - len(chosen)]
    return tuple(sorted(nic.index for nic in chosen)) if len(chosen) == need.count else None


def switch_sets(names: Mapping[str, int], most: int) -> Iterator[frozenset[str]]:
    """Sets of up to ``most`` switches, the smallest first; of equal ones those with the fewest cards free."""
    known = sorted(names)[:MOST_SWITCHES]
    for width in range(1, min(most, len(known)) + 1):
        sets = sorted(combinations(known, width), key=lambda one: (sum(names[name] for name in one), one))
        yield from map(frozenset, sets)
