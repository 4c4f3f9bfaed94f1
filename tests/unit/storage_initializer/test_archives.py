"""Archives of models: what is in them is unpacked, and nothing of it leaves the model's folder."""

import io
import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage_initializer.archives import is_archive, unpack
from storage_initializer.failures import FetchError


def tar(file: Path, *members: tarfile.TarInfo | tuple[str, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(file, mode) as made:  # type: ignore[call-overload]
        for member in members:
            if isinstance(member, tuple):
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                made.addfile(info, io.BytesIO(member[1]))
            else:
                made.addfile(member)
    return file


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "outer" / "model"
    made.mkdir(parents=True)
    return made


def everything(folder: Path) -> dict[str, str]:
    return {str(one.relative_to(folder)): one.read_text() for one in folder.rglob("*") if one.is_file()}


@pytest.mark.parametrize(
    ("ending", "mode"), [(".tar", "w"), (".tgz", "w:gz"), (".tar.gz", "w:gz"), (".tar.xz", "w:xz")]
)
def test_a_tar_is_unpacked(folder: Path, ending: str, mode: str) -> None:
    archive = tar(folder / f"m{ending}", ("a/b/model.pt", b"x"), ("c", b"y"), link("a/latest", "b"), mode=mode)
    assert is_archive(archive.name)
    unpack(archive, folder)
    archive.unlink()
    assert everything(folder) == {"a/b/model.pt": "x", "c": "y"}
    assert (folder / "a" / "latest" / "model.pt").read_text() == "x"


def test_a_zip_is_unpacked(folder: Path) -> None:
    with zipfile.ZipFile(folder / "m.zip", "w") as made:
        made.writestr("a/model.pt", "x")
    unpack(folder / "m.zip", folder)
    (folder / "m.zip").unlink()
    assert everything(folder) == {"a/model.pt": "x"}


BAD: dict[str, Callable[[Path], Path]] = {
    "a name that goes up": lambda at: tar(at / "m.tar.gz", ("../escaped", b"x")),
    "a name that goes up in the midst": lambda at: tar(at / "m.tar.gz", ("a/../../escaped", b"x")),
    "an absolute name": lambda at: tar(at / "m.tar.gz", ("/tmp/escaped", b"x")),
    "a link that leads out": lambda at: tar(at / "m.tar.gz", link("l", "../escaped")),
    "a link to an absolute place": lambda at: tar(at / "m.tar.gz", link("l", "/etc/passwd")),
    "a hard link that leads out": lambda at: tar(at / "m.tar.gz", link("l", "../escaped", tarfile.LNKTYPE)),
    "a file behind a link": lambda at: tar(at / "m.tar.gz", link("l", "."), ("l/x", b"x")),
    "a link behind a link": lambda at: tar(at / "m.tar.gz", ("p/z", b""), link("p/q", "."), link("p/q/r", "../../z")),
    "a link that goes down and up": lambda at: tar(at / "m.tar.gz", link("q", "."), link("r", "q/../escaped")),
    "a device": lambda at: tar(at / "m.tar.gz", link("d", "", tarfile.CHRTYPE)),
    "a pipe": lambda at: tar(at / "m.tar.gz", link("d", "", tarfile.FIFOTYPE)),
}


@pytest.mark.parametrize("what", BAD)
def test_what_would_leave_the_folder_is_refused_before_anything_is_unpacked(folder: Path, what: str) -> None:
    archive = BAD[what](folder)
    with pytest.raises(FetchError, match="in the archive"):
        unpack(archive, folder)
    assert [one.name for one in folder.iterdir()] == [archive.name]
    assert [one.name for one in folder.parent.iterdir()] == ["model"]


def test_a_zip_that_would_leave_the_folder_is_refused(folder: Path) -> None:
    with zipfile.ZipFile(folder / "m.zip", "w") as made:
        made.writestr("../escaped", "x")
    with pytest.raises(FetchError, match="outside of the model's folder"):
        unpack(folder / "m.zip", folder)


def test_owners_and_rights_of_an_archive_are_not_taken_over(folder: Path) -> None:
    info = tarfile.TarInfo("tool")
    info.uid, info.gid, info.mode = 12345, 12345, 0o4777
    unpack(tar(folder / "m.tar", info, mode="w"), folder)
    found = (folder / "tool").stat()
    assert (found.st_uid, found.st_mode & 0o7777) == (os.getuid(), 0o755)


@pytest.mark.parametrize("name", ["m.tar.gz", "m.tar", "m.zip", "m.tar.xz", "m.tar.bz2"])
def test_what_is_no_archive_is_said_to_be_none(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"<html>not found</html>" * 100)
    with pytest.raises(FetchError, match="no whole archive"):
        unpack(folder / name, folder)


@given(st.floats(0.0, 0.999))
def test_an_archive_that_is_cut_off_is_never_taken_for_a_whole_one(share: float) -> None:
    """Wherever it is cut; random content, so that the compressed form is as long as it."""
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        archive = tar(folder / "m.tar.gz", ("a", os.urandom(30_000)), ("b", os.urandom(30_000)))
        whole = archive.read_bytes()
        archive.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(FetchError, match="no whole archive"):
            unpack(archive, folder)


def test_an_archive_that_needs_more_room_than_there_is_is_refused_first(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tar(folder / "m.tar.gz", ("big", bytes(1 << 20)))
    monkeypatch.setattr("storage_initializer.room.shutil.disk_usage", lambda at: type("Use", (), {"free": 1000})())
    with pytest.raises(FetchError, match="1048576 bytes are needed, 1000 are free"):
        unpack(archive, folder)
    assert [one.name for one in folder.iterdir()] == ["m.tar.gz"]
