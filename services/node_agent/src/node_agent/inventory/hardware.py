"""What of the machine rules are about: its CPUs with their cores, its disks, and what it shares out of its caches."""

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from kube.cpu_lists import parse_cpus
from node_agent.domain.colocation.machine import CacheHardware, Processor
from node_agent.domain.colocation.network_rules import Uplink


@dataclass(frozen=True, slots=True)
class Hardware:
    """What was found, once."""

    processors: tuple[Processor, ...]
    disks: dict[str, str] = field(default_factory=dict)
    """Numbers (``8:0``) by name (``sda``)."""
    cache: CacheHardware | None = None
    uplink: Uplink | None = None
    """None where nobody looked for it."""


def find_hardware(cpus: Collection[int], root: Path = Path("/"), uplink: Uplink | None = None) -> Hardware:
    """The hardware of this machine, with the CPUs that pods may have."""
    return Hardware(_processors(cpus, root), _disks(root), _cache(root), uplink)


def _processors(cpus: Collection[int], root: Path) -> tuple[Processor, ...]:
    home = {
        cpu: int(folder.name[4:])
        for folder in (root / "sys/devices/system/node").glob("node[0-9]*")
        for cpu in parse_cpus(_read(folder / "cpulist"))
    }
    return tuple(Processor(cpu, _core(cpu, root), home.get(cpu, 0)) for cpu in sorted(cpus))


def _core(cpu: int, root: Path) -> int:
    """The lowest CPU of the core: numbers of cores begin anew in every socket."""
    folder = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
    text = _read(folder / "core_cpus_list") or _read(folder / "thread_siblings_list")
    return min(parse_cpus(text), default=cpu)


def _disks(root: Path) -> dict[str, str]:
    return {file.parent.name: text for file in sorted((root / "sys/block").glob("*/dev")) if (text := _read(file))}


def _cache(root: Path) -> CacheHardware | None:
    """What resctrl shares out, where it is mounted."""
    mount = root / "sys/fs/resctrl"
    mask = _read(mount / "info/L3/cbm_mask")
    if not mask:
        return None
    lines = dict(line.strip().split(":", 1) for line in _read(mount / "schemata").splitlines() if ":" in line)
    caches = tuple(int(part.split("=")[0]) for part in lines.get("L3", "").split(";") if "=" in part)
    amd = "AuthenticAMD" in _read(root / "proc/cpuinfo")
    return CacheHardware(int(mask, 16), caches, "MB" in lines, amd)


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
