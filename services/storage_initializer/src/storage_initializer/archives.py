"""Archives of models: a single file of a model that is one is unpacked, and nothing of it leaves the model's folder."""

import lzma
import shutil
import tarfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from storage_initializer.failures import FetchError
from storage_initializer.room import check_room, saying_full

TAR = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
ZIP = (".zip",)
_CHUNK_BYTES = 1 << 20
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError, KeyError)


def is_archive(name: str) -> bool:
    """Whether a file of that name is one that is unpacked."""
    return name.lower().endswith((*TAR, *ZIP))


def unpack(archive: Path, folder: Path) -> None:
    """Unpack ``archive`` into ``folder``.

    Raises FetchError for one that is broken, that is bigger than the room there is, or that has an entry which would lie
    outside of ``folder``, a link that leads out of it, or a device.
    """
    with saying_full(folder):
        try:
            if archive.name.lower().endswith(ZIP):
                _unzip(archive, folder)
            else:
                _untar(archive, folder)
        except _BROKEN as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise FetchError(f"{archive.name} is no whole archive: {error}") from None


def _untar(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as opened:
        members = opened.getmembers()
        _check_members(members)
        check_room(folder, sum(member.size for member in members))
        for member in members:
            _place(opened, member, folder)


def _check_members(members: list[tarfile.TarInfo]) -> None:
    """Nothing lies outside, and nothing lies behind a link, so that each link is where its name says."""
    links = {_parts(member.name) for member in members if member.issym()}
    for member in members:
        _check_name(member.name)
        if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
            raise FetchError(f"{member.name!r} in the archive is no file, folder or link")
        parts = _parts(member.name)
        if any(parts[:length] in links for length in range(1, len(parts))):
            raise FetchError(f"{member.name!r} in the archive lies behind a link")
        if member.islnk():
            _check_name(member.linkname)
        if member.issym() and not _stays(parts[:-1], member.linkname):
            raise FetchError(f"{member.name!r} in the archive leads out of the model's folder, to {member.linkname!r}")


def _stays(where: tuple[str, ...], target: str) -> bool:
    """Whether a link in the folder ``where`` to ``target`` stays inside: it goes up no further than it is deep, and first."""
    path = PurePosixPath(target)
    ups = 0
    while ups < len(path.parts) and path.parts[ups] == "..":
        ups += 1
    return not path.is_absolute() and ups <= len(where) and ".." not in path.parts[ups:]


def _place(opened: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """One member, with nothing of the owner and the rights that the archive says."""
    target = folder.joinpath(*_parts(member.name))
    if member.isdir():
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    if member.issym():
        target.symlink_to(member.linkname)
        return
    source = opened.extractfile(member)
    if source is None:
        raise tarfile.ReadError(f"{member.name} has no content")
    with source, target.open("wb") as file:
        shutil.copyfileobj(source, file, _CHUNK_BYTES)
    if target.stat().st_size != member.size and not member.islnk():
        raise tarfile.ReadError(f"{member.name} is cut off")
    target.chmod(0o755 if member.mode & 0o100 else 0o644)


def _parts(name: str) -> tuple[str, ...]:
    return PurePosixPath(name).parts


def _unzip(archive: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as opened:
        entries = opened.infolist()
        for entry in entries:
            _check_name(entry.filename)
        check_room(folder, sum(entry.file_size for entry in entries))
        for entry in entries:
            opened.extract(entry, folder)


def _check_name(name: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise FetchError(f"{name!r} in the archive lies outside of the model's folder")
