"""Where a real node lives: namespaces that end with their holder, and control groups of its own in every hierarchy."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from lab_programs import NoLab

CGROUPS = Path("/sys/fs/cgroup")
TOOLS = ("unshare", "nsenter", "ip", "mount", "bash", "ldd", "iptables-restore", "conntrack")
SERVICES = "10.96.0.0/16"
START_SECONDS = 90.0
SHARES = "20480"
"""Of the pods together: what else runs on this machine has 1,024 for each process."""

# Reads its standard input to the end: it ends with who started it. bash takes up processes whose parents have ended.
_HOLDER = """
set -e
mount -t tmpfs tmpfs /run
mkdir -p "$1/var" "$1/var-work"
mount -t overlay overlay -o "lowerdir=/var,upperdir=$1/var,workdir=$1/var-work" /var
ip link set lo up
echo 1 > /proc/sys/net/ipv4/ip_forward
touch "$1/holds"
while read -r _; do :; done
"""


@dataclass(frozen=True, slots=True)
class Place:
    """The state of a node is below ``folder``; its ``number`` is in its addresses and its control groups."""

    folder: Path
    number: int

    @property
    def address(self) -> str:
        return f"10.213.{self.number}.2"

    @property
    def cgroup_root(self) -> str:
        """The kubelet's ``--cgroup-root``."""
        return f"/tidegate-lab-{self.number}"

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def link(self) -> str:
        """This machine's end of the way to the node."""
        return f"tidelab{self.number}"


def check_machine() -> None:
    """Raises NoLab where no real node can be had."""
    if os.geteuid() != 0:
        raise NoLab("a real node needs root")
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        raise NoLab(f"a real node needs {', '.join(missing)}")
    if not (CGROUPS / "memory").is_dir() and not (CGROUPS / "cgroup.controllers").exists():
        raise NoLab(f"no control groups are mounted at {CGROUPS}")


def hierarchies() -> list[Path]:
    """Where the hierarchies of control groups are mounted."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    return sorted({one.resolve() for one in CGROUPS.iterdir() if one.is_dir()})


@contextmanager
def control_groups() -> Iterator[int]:
    """A control group of the node's own in every hierarchy, for the kubelet to work in; its number is nobody else's."""
    first, *others = hierarchies()
    number = next(number for number in range(10, 250) if _made(first / f"tidegate-lab-{number}"))
    groups = [one / f"tidegate-lab-{number}" for one in (first, *others)]
    try:
        for group in groups:
            group.mkdir(exist_ok=True)
            for name in ("cpuset.cpus", "cpuset.mems"):
                if (group / name).exists():
                    (group / name).write_text((group.parent / name).read_text())
            if (group / "cpu.shares").exists():
                (group / "cpu.shares").write_text(SHARES)
        yield number
    finally:
        for group in groups:
            _remove(group)


def _made(folder: Path) -> bool:
    try:
        folder.mkdir()
    except FileExistsError:
        return False
    return True


def _remove(group: Path) -> None:
    """Remove a control group and all below, whose processes have been killed just now."""
    until = time.monotonic() + 20
    while group.exists():
        for folder, _, _ in os.walk(group, topdown=False):
            try:
                Path(folder).rmdir()
            except OSError:
                continue
        if time.monotonic() > until:
            raise RuntimeError(f"{group} cannot be removed: something still runs in it")
        time.sleep(0.05)


@contextmanager
def namespaces(place: Place) -> Iterator[int]:
    """The process that holds the node's namespaces: its id."""
    folder, link = place.folder, place.link
    command = ["unshare", "--mount", "--net", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
    command += ["bash", "-c", _HOLDER, "holder", str(folder)]
    with (folder / "holder.log").open("ab") as log:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True)
    try:
        until(
            lambda: (folder / "holds").exists() or process.poll() is not None, "the namespaces", folder / "holder.log"
        )
        if process.poll() is not None:
            raise NoLab(f"no namespaces can be made: {(folder / 'holder.log').read_text().strip()}")
        (holder,) = psutil.Process(process.pid).children()
        _run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", str(holder.pid))
        _run("ip", "addr", "add", f"10.213.{place.number}.1/30", "dev", link)
        _run("ip", "link", "set", link, "up")
        inside = ["nsenter", f"--net=/proc/{holder.pid}/ns/net"]
        _run(*inside, "ip", "addr", "add", f"{place.address}/30", "dev", "eth0")
        _run(*inside, "ip", "link", "set", "eth0", "up")
        # A packet to a Service is sent on its way before its destination becomes a pod's.
        _run(*inside, "ip", "route", "add", SERVICES, "dev", "eth0")
        yield holder.pid
    finally:
        process.kill()
        process.communicate()
        until(lambda: not Path(f"/sys/class/net/{link}").exists(), "the end of the namespaces", folder / "holder.log")


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


def until(holds: Callable[[], Any], what: str, log: Path) -> Any:
    """What ``holds`` returns once that is true. Raises TimeoutError with the end of ``log``."""
    until = time.monotonic() + START_SECONDS
    while True:
        if found := holds():
            return found
        if time.monotonic() > until:
            raise TimeoutError(f"{what}: not within {START_SECONDS:g} s\n{log.read_text()[-3000:]}")
        time.sleep(0.1)
