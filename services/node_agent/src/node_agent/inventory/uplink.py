"""The device by which packets leave this machine, and whether what leaves can be shared out there."""

from dataclasses import replace
from pathlib import Path

from node_agent.domain.colocation.network_rules import Sorting, Uplink
from node_agent.runtime.network_commands import NFT, TC, found

_NOT_TOLD_APART = (
    "without cgroup version 2 the kernel does not tell the pods of this node apart: they share its network"
)
_PAIR = "what looks like the uplink is one end of a pair: the agent does not run in the network of the machine"


def find_uplink(sorting: Sorting, below: str = "", root: Path = Path("/")) -> Uplink:
    """The device of the default route."""
    device = _device(root)
    folder = root / "sys/class/net" / device
    missing = ""
    if not device:
        missing = "no default route"
    elif _is_end(folder):
        missing = _PAIR
    elif lacking := [name for name in (TC, NFT) if found(name) is None]:
        missing = f"no program {' and none '.join(lacking)}"
    return Uplink(device, _mega(folder / "speed") * 1_000_000, sorting, below, missing)


def own_uplink(version: int, parent: str, root: Path = Path("/")) -> Uplink:
    """That of a node whose pods this agent runs, in control groups of ``version`` below ``parent``: they share its network."""
    found = find_uplink(Sorting.PATH, parent, root)
    return found if version == 2 else replace(found, missing=found.missing or _NOT_TOLD_APART)


def _device(root: Path) -> str:
    """Of IPv4, or of IPv6 where there is none; of several the one of the least metric."""
    routes = [line.split() for line in _read(root / "proc/net/route").splitlines()[1:]]
    four = [(int(one[6]), one[0]) for one in routes if len(one) > 7 and one[1] == one[7] == "00000000"]
    routes = [line.split() for line in _read(root / "proc/net/ipv6_route").splitlines()]
    six = [(int(one[5], 16), one[9]) for one in routes if len(one) > 9 and one[1] == "00" and one[9] != "lo"]
    return min(four or six, default=(0, ""))[1]


def _is_end(folder: Path) -> bool:
    """Whether the device stands on one that is not here (VLANs and the like stand on one that is)."""
    other = _read(folder / "iflink") != _read(folder / "ifindex")
    return other and not any(folder.glob("lower_*"))


def _mega(file: Path) -> int:
    """Virtual devices say -1, or nothing."""
    try:
        return max(0, int(_read(file)))
    except ValueError:
        return 0


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
