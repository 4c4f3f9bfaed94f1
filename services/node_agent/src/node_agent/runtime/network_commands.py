"""What is said to ``tc`` and ``nft`` so that a plan holds, and what they are asked.

A packet is put into its class by its priority, which nftables sets: by the control group of the socket that sent it, where
that is known in the machine's own network (kernels from 5.13 on), or by the address that it comes from, where it comes out of a
network of its own. The kernel knows no more which group that was by the time such a packet gets to the uplink. The queueing
discipline takes a priority that names one of its classes as the class, so it needs no filters.
"""

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from ipaddress import ip_address

from node_agent.domain.colocation.network import HANDLE, OTHERS, WHOLE, NetworkPlan, TrafficClass, class_id
from node_agent.domain.colocation.network_rules import Sorting

TC, NFT = "tc", "nft"
_NAME = f"{HANDLE:x}:"
TABLE = "inet tidegate_network"
QUANTUM = 60_000
"""Bytes that a class may send before the next of its priority; what the kernel makes of high rates it warns of."""

Sockets = Mapping[int, tuple[str, ...]]
"""By class, the paths of the control groups below the mount of version 2."""


def found(program: str) -> str | None:
    """The path of a program, where this machine has it."""
    return shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")


def undoing(tc: str, nft: str | None, device: str) -> list[tuple[str, ...]]:
    """The commands by which a device is as it was; what is not ours they do not touch."""
    undone: list[tuple[str, ...]] = [(tc, "qdisc", "del", "dev", device, "root", "handle", _NAME)]
    return [*undone, (nft, "delete", "table", *TABLE.split())] if nft is not None else undone


def ours(said: str) -> list[str]:
    """The devices that have our discipline, of what ``tc qdisc show`` says."""
    return re.findall(rf"^qdisc htb {_NAME} dev (\S+) root", said, re.MULTILINE)


def somebody_elses(said: str, device: str) -> str:
    """The discipline that somebody gave ``device``; nothing where it has ours, or what the kernel gives each device."""
    given = re.findall(rf"^qdisc (\S+) ([0-9a-f]+): dev {re.escape(device)} root", said, re.MULTILINE)
    return next((kind for kind, handle in given if handle not in ("0", f"{HANDLE:x}")), "")


def shaping(plan: NetworkPlan, said: str, classes: str) -> str:
    """What ``tc -batch`` is to do, where ``said`` is what ``tc qdisc show`` says, ``classes`` what ``tc class show`` of the device."""
    whole = TrafficClass(WHOLE, plan.total, plan.total, 0)
    wanted = {one.minor for one in plan.classes} | {WHOLE}
    there = {int(minor, 16) for minor in re.findall(rf"^class htb {_NAME}([0-9a-f]+) ", classes, re.MULTILINE)}
    lines = []
    if plan.device not in ours(said):
        lines.append(f"qdisc replace dev {plan.device} root handle {_NAME} htb default {OTHERS:x}")
        there = set()
    lines += [
        _class(plan.device, _NAME if one is whole else f"{_NAME}{WHOLE:x}", one) for one in (whole, *plan.classes)
    ]
    lines += [f"class del dev {plan.device} classid {_NAME}{minor:x}" for minor in sorted(there - wanted)]
    return "".join(f"{line}\n" for line in lines)


def sorting(plan: NetworkPlan, by: Sorting, sockets: Sockets) -> str:
    """The table of nftables, as one change: it is there as a whole, or as it was."""
    local = [line for minor in sorted(plan.addresses) for line in _by_socket(minor, by, sockets)]
    routed = [line for minor, found in sorted(plan.addresses.items()) for line in _by_address(minor, found)]
    chains = [
        f"chain {name} {{ type filter hook {hook} priority -150; policy accept; "
        + "".join(f'oifname "{plan.device}" {line} ; ' for line in lines)  # a class is read only before a space
        + "}\n"
        for name, hook, lines in (("local", "output", local), ("routed", "postrouting", routed))
    ]
    return f"table {TABLE}\ndelete table {TABLE}\ntable {TABLE} {{\n{''.join(chains)}}}\n"


def _class(device: str, parent: str, one: TrafficClass) -> str:
    part = f"rate {one.rate}bit ceil {one.ceiling}bit prio {one.priority} quantum {QUANTUM}"
    return f"class replace dev {device} parent {parent} classid {_NAME}{one.minor:x} htb {part}"


def _by_socket(minor: int, by: Sorting, sockets: Sockets) -> Iterator[str]:
    if by is Sorting.CLASS_ID:
        yield f"meta cgroup {class_id(minor)} meta priority set {_NAME}{minor:x}"
    for path in sockets.get(minor, ()):
        yield f'socket cgroupv2 level {len(path.split("/"))} "{path}" meta priority set {_NAME}{minor:x}'


def _by_address(minor: int, addresses: tuple[str, ...]) -> Iterator[str]:
    for family, version in (("ip", 4), ("ip6", 6)):
        own = [one for one in addresses if ip_address(one).version == version]
        if own:
            yield f"{family} saddr {{ {', '.join(own)} }} meta priority set {_NAME}{minor:x}"
