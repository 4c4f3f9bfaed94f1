"""A mount and host name namespace of a container's own, made by the process that will become the container.

The machine's file system stays visible; over it are laid the container's volumes and its hosts file. A mount point that
the machine does not have is made without touching the machine: the folder that would hold it is covered by a small
memory file system with everything in it that the folder has, and the new entry. The same way a folder that the
container's user may not enter is covered by one that shows only what the container needs of it.

Standard library only: this runs between fork and exec.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from node_agent.runtime import syscalls

# A folder with more entries is not covered: each of them would be a mount.
MOST_ENTRIES = 2_000


def enter_new(own_user: bool) -> None:
    """Leave the machine's mount and host name namespaces; ``own_user`` does so without root, by a user namespace."""
    if own_user:
        user, group = os.getuid(), os.getgid()
        syscalls.unshare(syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWNS | syscalls.CLONE_NEWUTS)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    else:
        syscalls.unshare(syscalls.CLONE_NEWNS | syscalls.CLONE_NEWUTS)
    syscalls.mount(None, "/", flags=syscalls.MS_REC | syscalls.MS_PRIVATE)


def enter_of(pid: int, own_user: bool) -> None:
    """Enter the namespaces of a running container."""
    names = ("user", "mnt", "uts") if own_user else ("mnt", "uts")
    handles = [os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in names]
    for handle in handles:
        syscalls.setns(handle)


def build(view: Mapping[str, Any], user: int, groups: Iterable[int]) -> None:
    """Lay out what the container sees. ``view`` has ``stage`` (an empty folder), ``host_name``, ``reach`` (paths that
    its user must be able to get to) and ``mounts`` (source, target, read_only, and within: the folder that the source
    must lie in, wherever its links lead).

    Raises OSError with the path that could not be made.
    """
    syscalls.sethostname(view["host_name"])
    layout = _Layout(view["stage"])
    # A new root comes first, for it leaves nothing behind that could still be mounted; then all sources are opened,
    # before a mount covers the folder that one of them lies in.
    layout.extend_root(item["target"] for item in view["mounts"])
    sources = [_open_source(item) for item in view["mounts"]]
    layout.open_way([*view["reach"], view["stage"]], user, set(groups))
    for item, source in zip(view["mounts"], sources, strict=True):
        layout.bind(source, item["target"], bool(item["read_only"]))
        os.close(source)


def _open_source(item: Mapping[str, Any]) -> int:
    fd = os.open(item["source"], os.O_PATH | os.O_CLOEXEC)
    found = Path(f"/proc/self/fd/{fd}").readlink()  # of what is open now: no link can be changed behind this check
    if not found.is_relative_to(item["within"]):
        raise PermissionError(f"{item['target']}: its subPath leads out of the volume, to {found}")
    return fd


class _Layout:
    """The changes to this mount namespace; ``covered`` are the folders on a memory file system of ours."""

    def __init__(self, stage: str) -> None:
        self.stage = Path(stage)
        self.covered: set[Path] = set()

    def extend_root(self, targets: Iterable[str]) -> None:
        """Make the root folder one of ours if any of ``targets`` lies in a folder that it does not have."""
        for target in targets:
            parts = Path(os.path.realpath(target)).parts
            if len(parts) > 1 and not Path("/", parts[1]).exists():
                self._cover(Path("/"), None)
                return

    def open_way(self, paths: Iterable[str], user: int, groups: set[int]) -> None:
        """Make ``paths`` reachable for ``user``: cover each closed folder on the way, keeping only what is needed."""
        wanted: dict[Path, set[str]] = {}
        for text in paths:
            path = Path(text)
            for folder in path.parents:
                if not _may_enter(folder, user, groups):
                    wanted.setdefault(folder, set()).add(path.relative_to(folder).parts[0])
        for folder in sorted(wanted):
            self._cover(folder, sorted(wanted[folder]))

    def bind(self, source: int, target: str, read_only: bool) -> None:
        """Show what ``source`` stands for at ``target``."""
        is_folder = stat.S_ISDIR(os.fstat(source).st_mode)
        path = Path(os.path.realpath(target))
        self._make(path, is_folder)
        syscalls.mount(f"/proc/self/fd/{source}", str(path), flags=syscalls.MS_BIND | syscalls.MS_REC)
        if read_only:
            kept = os.statvfs(path).f_flag & 0xF  # nosuid, nodev, noexec must stay as they are
            flags = syscalls.MS_BIND | syscalls.MS_REMOUNT | syscalls.MS_RDONLY
            syscalls.mount(None, str(path), flags=flags | kept)
        elif is_folder:
            self.covered.add(path)  # a mount point inside of it is made in the volume itself

    def _make(self, path: Path, is_folder: bool) -> None:
        """See that there is a mount point at ``path``."""
        for parent in [*reversed(path.parents), path]:
            if parent.exists():
                continue
            if parent.parent not in self.covered:
                self._cover(parent.parent, None)
            if parent == path and not is_folder:
                parent.touch()
            else:
                parent.mkdir(mode=0o755)
                self.covered.add(parent)

    def _cover(self, folder: Path, only: list[str] | None) -> None:
        """Lay a memory file system over ``folder`` with the same entries (``only`` these), and nothing else."""
        names = sorted(os.listdir(folder)) if only is None else only  # noqa: PTH208
        if len(names) > MOST_ENTRIES:
            raise OSError(
                f"{folder} has {len(names)} entries, too many to add a mount point to (at most {MOST_ENTRIES})"
            )
        syscalls.mount("tidegate", str(self.stage), "tmpfs", data="mode=755,size=1m")
        for name in names:
            _mirror(folder / name, self.stage / name)
        if folder == Path("/"):
            _become_root(self.stage)
        else:
            syscalls.mount(str(self.stage), str(folder), flags=syscalls.MS_MOVE)
        self.covered.add(folder)


def _mirror(source: Path, target: Path) -> None:
    try:
        mode = source.lstat().st_mode
        if stat.S_ISLNK(mode):
            target.symlink_to(source.readlink())
            return
        if stat.S_ISDIR(mode):
            target.mkdir()
        else:
            target.touch()
    except FileNotFoundError:  # gone since it was listed
        return
    syscalls.mount(str(source), str(target), flags=syscalls.MS_BIND | syscalls.MS_REC)


def _become_root(new_root: Path) -> None:
    os.chdir(new_root)
    syscalls.pivot_root(".", ".")
    syscalls.unmount(".", syscalls.MNT_DETACH)
    os.chdir("/")


def _may_enter(folder: Path, user: int, groups: set[int]) -> bool:
    try:
        found = folder.stat()
    except OSError:
        return True
    if user == 0:
        return True
    if found.st_uid == user:
        return bool(found.st_mode & stat.S_IXUSR)
    return bool(found.st_mode & (stat.S_IXGRP if found.st_gid in groups else stat.S_IXOTH))
