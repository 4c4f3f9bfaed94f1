"""The files that a pod is given: its volumes and its hosts file, kept up to date while it runs."""

import os
from collections.abc import Iterable
from pathlib import Path

from node_agent.domain.volumes import Origin, Volume, VolumeFile
from node_agent.runtime.folders import DataFolder, PodFolder

_LINK = "..data"


def place_volume(data: DataFolder, folder: PodFolder, namespace: str, volume: Volume, owner: int, group: int) -> Path:
    """See that ``volume`` has its content on disk; returns where.

    Raises OSError when a host's path is not there.
    """
    if volume.origin is Origin.HOST:
        path = Path(volume.location)
        path.stat()
        return path
    if volume.origin is Origin.CLAIM:
        path = data.claim(namespace, volume.location)
        if not path.is_dir():
            path.mkdir(parents=True)
            # Pods of different users share a claim one after the other, and may share it at the same time.
            path.parent.chmod(0o711)
            path.chmod(0o777)
        return path
    path = folder.volume(volume.name)
    if not path.is_dir():
        path.mkdir(parents=True)
        os.chown(path, -1, group)
        path.chmod(0o2777 if volume.origin is Origin.EMPTY else 0o750)
    if volume.origin is Origin.FILES:
        write_files(path, volume.files, owner, group)
    return path


def make_inside(root: Path, path: str) -> None:
    """Make the folders of ``path`` in a volume, as far as they are missing.

    The volume is the user's, and the agent may be root: a link on the way is not followed, and nothing is made behind it.
    """
    here = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in filter(None, path.split("/")):
            try:
                os.mkdir(name, dir_fd=here)
                made = True
            except FileExistsError:
                made = False
            try:
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            except OSError:  # a file or a link: where it leads is checked when it is mounted
                return
            if made:
                os.fchmod(inner, 0o777)
            os.close(here)
            here = inner
    finally:
        os.close(here)


def write_files(folder: Path, files: Iterable[VolumeFile], owner: int, group: int) -> bool:
    """Make ``files`` the content of ``folder``, all at once for whoever reads it; False when they already are.

    The files lie in a folder of their own, that the link ``..data`` names; replacing the link replaces them all.
    """
    wanted = {file.path: (file.content, file.mode) for file in files}
    link = folder / _LINK
    if link.is_symlink() and _content(link.resolve()) == wanted:
        return False
    number = int(link.readlink().name.rpartition(".")[2]) + 1 if link.is_symlink() else 1
    fresh = folder / f"..content.{number}"
    fresh.mkdir(exist_ok=True)
    os.chown(fresh, -1, group)
    fresh.chmod(0o750)
    for path, (content, mode) in wanted.items():
        _write(fresh, path, content, mode, owner, group)
    old = link.resolve() if link.is_symlink() else None
    draft = folder / f"{_LINK}.new"
    draft.symlink_to(fresh.name)
    draft.replace(link)
    _link_entries(folder, {path.partition("/")[0] for path in wanted})
    if old is not None:
        _remove_tree(old)
    return True


def write_hosts(file: Path, text: str) -> bool:
    """Make ``text`` the content of the hosts file; False when it is.

    In place: a process sees the file by a mount of it, which a new file of the same name would not change.
    """
    raw = text.encode()
    if file.exists() and file.read_bytes() == raw:
        return False
    fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.fchmod(fd, 0o644)
        os.pwrite(fd, raw, 0)  # then cut: a reader in between sees whole lines of the new text first
        os.ftruncate(fd, len(raw))
    finally:
        os.close(fd)
    return True


def _write(root: Path, path: str, content: bytes, mode: int, owner: int, group: int) -> None:
    target = root / path
    for parent in reversed(target.relative_to(root).parents[:-1]):
        (root / parent).mkdir(exist_ok=True)
        os.chown(root / parent, -1, group)
        (root / parent).chmod(0o750)
    target.write_bytes(content)
    os.chown(target, owner, group)
    target.chmod(mode)


def _link_entries(folder: Path, names: set[str]) -> None:
    for entry in folder.iterdir():
        if entry.is_symlink() and entry.name != _LINK and entry.name not in names:
            entry.unlink()
    for name in names:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"{_LINK}/{name}")


def _content(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(file.relative_to(folder)): (file.read_bytes(), file.stat().st_mode & 0o7777)
        for file in folder.rglob("*")
        if file.is_file()
    }


def _remove_tree(folder: Path) -> None:
    for entry in sorted(folder.rglob("*"), reverse=True):
        entry.rmdir() if entry.is_dir() else entry.unlink()
    folder.rmdir()
