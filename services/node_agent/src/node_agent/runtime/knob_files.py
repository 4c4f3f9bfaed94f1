"""The files of control groups in which rules are put in force, by the names that version 2 has for them."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

from kube.cpu_lists import format_cpus, parse_cpus
from node_agent.domain.colocation.groups import (
    CPU_BURST,
    CPU_IDLE,
    CPU_MAX,
    CPU_SET,
    CPU_SHARES,
    CPU_WEIGHT,
    IO_MAX,
    IO_WEIGHT,
    MEMORY_MAX,
    NET_CLASS,
    UNLIMITED,
)
from node_agent.runtime.guard import Raw

_MOST_BYTES = 4096
THROTTLES = {"rbps": "read_bps", "wbps": "write_bps", "riops": "read_iops", "wiops": "write_iops"}


class NotKnown(Exception):
    """The machine has no such file: what it would put in force cannot be had here."""


class KnobFiles(Protocol):
    """One version's files. ``folder`` is below what the hierarchy was given. All methods raise OSError."""

    def write(self, folder: str, name: str, text: str) -> None:
        """Put ``text`` in force; raises NotKnown as well."""

    def raw(self, folder: str, name: str, text: str) -> list[Raw]:
        """The writes that put ``text`` in force where it takes nothing from anybody; raises NotKnown as well."""

    def read(self, folder: str, name: str) -> str | None:
        """What stands there, as it would be written; None where that cannot be said."""

    def tasks(self, folder: str) -> list[int]:
        """The processes of a group."""


class KnobFilesV2:
    """All files of a group in one folder below ``root``."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def write(self, folder: str, name: str, text: str) -> None:
        """See ``KnobFiles``."""
        for one in self.raw(folder, name, text):
            Path(one.path).write_text(one.text)

    def raw(self, folder: str, name: str, text: str) -> list[Raw]:
        """See ``KnobFiles``."""
        if name in (CPU_SHARES, NET_CLASS):
            return []
        file = self._root / folder / name
        _exists(file)
        lines = text.splitlines() if name in (IO_MAX, IO_WEIGHT) else [text]
        return [Raw(str(file), line or "\n") for line in lines]

    def read(self, folder: str, name: str) -> str | None:
        """See ``KnobFiles``. Of disks the kernel says more than was written."""
        if name in (CPU_SHARES, IO_MAX, IO_WEIGHT, NET_CLASS):
            return None
        return _text(f"{self._root}/{folder}/{name}")

    def tasks(self, folder: str) -> list[int]:
        """See ``KnobFiles``."""
        return [int(line) for line in (self._root / folder / "cgroup.procs").read_text().split()]


class KnobFilesV1:
    """The files of each controller below its own root: ``roots`` are folders by controller."""

    _FILES: Mapping[str, tuple[str, str]] = {
        CPU_SHARES: ("cpu", "cpu.shares"),
        CPU_MAX: ("cpu", "cpu.cfs_quota_us"),
        CPU_BURST: ("cpu", "cpu.cfs_burst_us"),
        CPU_IDLE: ("cpu", "cpu.idle"),
        CPU_SET: ("cpuset", "cpuset.cpus"),
        MEMORY_MAX: ("memory", "memory.limit_in_bytes"),
        NET_CLASS: ("net_cls", "net_cls.classid"),
    }

    def __init__(self, roots: Mapping[str, Path]) -> None:
        self._roots = roots

    def write(self, folder: str, name: str, text: str) -> None:
        """See ``KnobFiles``."""
        for one in self.raw(folder, name, text):
            if one.below:
                _set_cpus(Path(one.path).parent, parse_cpus(one.text))
            else:
                Path(one.path).write_text(one.text)

    def raw(self, folder: str, name: str, text: str) -> list[Raw]:
        """See ``KnobFiles``."""
        if name == CPU_WEIGHT:
            return []
        if name == IO_MAX:
            return list(self._throttles(folder, text))
        file = self._file(folder, name)
        if name == CPU_MAX:
            quota, period = text.split()
            return [Raw(str(file.parent / "cpu.cfs_period_us"), period), Raw(str(file), _number(quota))]
        return [Raw(str(file), _number(text), below=name == CPU_SET)]

    def read(self, folder: str, name: str) -> str | None:
        """See ``KnobFiles``."""
        controller, own_name = self._FILES.get(name, ("", ""))
        root = self._roots.get(controller)
        if root is None:
            return None
        found = _text(f"{root}/{folder}/{own_name}")
        if name == CPU_MAX:
            period = _text(f"{root}/{folder}/cpu.cfs_period_us")
            return f"{UNLIMITED if found == '-1' else found} {period}"
        # Where there is no limit version 1 shows the largest number of pages.
        return UNLIMITED if name == MEMORY_MAX and int(found) >= 1 << 62 else found

    def tasks(self, folder: str) -> list[int]:
        """See ``KnobFiles``."""
        return [int(line) for line in (self._roots["cpu"] / folder / "cgroup.procs").read_text().split()]

    def _file(self, folder: str, name: str) -> Path:
        if name not in self._FILES:
            raise NotKnown(f"{name} has no equal in cgroup version 1")
        controller, own_name = self._FILES[name]
        if controller not in self._roots:
            raise NotKnown(f"no controller {controller}")
        file = self._roots[controller] / folder / own_name
        _exists(file)
        return file

    def _throttles(self, folder: str, text: str) -> Iterator[Raw]:
        """``8:0 rbps=max wbps=1000`` → each limit in its own file; 0 takes one away."""
        if "blkio" not in self._roots:
            raise NotKnown("no controller blkio")
        for line in text.splitlines():
            number, *limits = line.split()
            for limit in limits:
                name, _, amount = limit.partition("=")
                file = self._roots["blkio"] / folder / f"blkio.throttle.{THROTTLES[name]}_device"
                _exists(file)
                yield Raw(str(file), f"{number} {0 if amount == UNLIMITED else amount}")


def _exists(file: Path) -> None:
    """Raises NotKnown where the group is there and the file is not, FileNotFoundError where the group is gone."""
    if file.exists():
        return
    if file.parent.is_dir():
        raise NotKnown(f"this kernel has no {file.name}")
    raise FileNotFoundError(2, "the group is gone", str(file.parent))


def _text(path: str) -> str:
    """What a small file says. Many are read at a time, and a Path for each costs as much as reading it."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, _MOST_BYTES).decode().strip()
    finally:
        os.close(fd)


def _number(text: str) -> str:
    return "-1" if text == UNLIMITED else text


def _set_cpus(folder: Path, cpus: tuple[int, ...]) -> None:
    """The CPUs of a group and of all below it: a group has to hold those of its children at every moment."""
    file = folder / "cpuset.cpus"
    before = parse_cpus(file.read_text())
    if before != cpus:
        file.write_text(format_cpus({*before, *cpus}))
    for child in folder.iterdir():
        if child.is_dir():
            try:
                _set_cpus(child, cpus)
            except FileNotFoundError:  # it went meanwhile
                continue
    if before != cpus:
        file.write_text(format_cpus(cpus))
