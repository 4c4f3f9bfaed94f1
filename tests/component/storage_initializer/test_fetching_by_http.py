"""Models by HTTP, with lines that break, servers that change, disks that fill, and a program that is killed."""

import io
import json
import os
import resource
import signal
import subprocess
import tarfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from storage_initializer.failures import FetchError
from storage_initializer.fetching import fetch
from storage_initializer.staging import PART, Staging

DATA = os.urandom(300_000)
Started = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage_initializer.retries.FIRST_PAUSE_SECONDS", 0.001)


def names(folder: Path) -> list[str]:
    return sorted(str(one.relative_to(folder)) for one in folder.rglob("*") if not one.is_dir())


def archive_of(name: str) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as made:
        info = tarfile.TarInfo(name)
        info.size = len(DATA)
        made.addfile(info, io.BytesIO(DATA))
    return packed.getvalue()


def test_a_file_is_fetched_and_nothing_else_is_left(web: Any, tmp_path: Path) -> None:
    web.files["/m/model%20a.onnx"] = DATA
    fetch(f"{web.url}/m/model%20a.onnx", tmp_path)
    assert (tmp_path / "model a.onnx").read_bytes() == DATA
    assert [one.name for one in tmp_path.iterdir()] == ["model a.onnx"]


def test_a_line_that_breaks_is_gone_on_with_where_it_broke(web: Any, tmp_path: Path) -> None:
    web.files["/model.onnx"], web.cuts = DATA, [100_000, 0, 50_000]
    fetch(f"{web.url}/model.onnx", tmp_path)
    assert (tmp_path / "model.onnx").read_bytes() == DATA
    assert [one.get("Range") for one in web.asked] == [None, "bytes=100000-", "bytes=100000-", "bytes=150000-"]


def test_a_file_that_was_changed_in_between_is_fetched_anew(web: Any, tmp_path: Path) -> None:
    """No half of the one with a half of the other."""
    other = os.urandom(200_000)
    web.files["/model.onnx"], web.cuts = DATA, [100_000]

    class Once(list[int]):
        def pop(self, place: Any = -1) -> int:
            web.files["/model.onnx"], web.tags["/model.onnx"] = other, '"2"'
            return super().pop(place)

    web.cuts = Once([100_000])
    fetch(f"{web.url}/model.onnx", tmp_path)
    assert (tmp_path / "model.onnx").read_bytes() == other


def test_a_server_that_knows_no_ranges_is_asked_for_all_again(web: Any, tmp_path: Path) -> None:
    web.files["/model.onnx"], web.cuts, web.ranges = DATA, [100_000], False
    fetch(f"{web.url}/model.onnx", tmp_path)
    assert (tmp_path / "model.onnx").read_bytes() == DATA


def test_an_overloaded_server_is_asked_again(web: Any, tmp_path: Path) -> None:
    web.files["/model.onnx"], web.failing = DATA, [503, 429, 500]
    fetch(f"{web.url}/model.onnx", tmp_path)
    assert (tmp_path / "model.onnx").read_bytes() == DATA


@pytest.mark.parametrize("code", [401, 403, 404])
def test_a_server_that_says_no_is_not_asked_twice(web: Any, tmp_path: Path, code: int) -> None:
    web.failing = [code]
    with pytest.raises(FetchError, match=f"HTTP {code}"):
        fetch(f"{web.url}/model.onnx", tmp_path)
    assert len(web.asked) == 1


def test_a_server_that_is_not_there_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"refused.*6 tries"):
        fetch("http://127.0.0.1:9/model.onnx", tmp_path)


def test_headers_come_from_a_secret_for_this_host_alone(
    web: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    web.files["/model.onnx"] = DATA
    monkeypatch.setenv("HTTPS_HEADERS", json.dumps({"Authorization": "Bearer t"}))
    monkeypatch.setenv("HTTPS_HOST", "other.test")
    fetch(f"{web.url}/model.onnx", tmp_path / "a")
    monkeypatch.setenv("HTTPS_HOST", "127.0.0.1")
    fetch(f"{web.url}/model.onnx", tmp_path / "b")
    assert [one.get("Authorization") for one in web.asked] == [None, "Bearer t"]
    monkeypatch.setenv("HTTPS_HEADERS", "Authorization: x")
    with pytest.raises(FetchError, match="no JSON object"):
        fetch(f"{web.url}/model.onnx", tmp_path / "c")


def test_an_archive_is_unpacked_and_a_broken_one_leaves_nothing(web: Any, tmp_path: Path) -> None:
    packed = archive_of("echo/1/model.py")
    web.files["/m.tar.gz"], web.files["/broken.tar.gz"] = packed, packed[:-1000]
    fetch(f"{web.url}/m.tar.gz", tmp_path / "a")
    assert names(tmp_path / "a") == ["echo/1/model.py"]
    with pytest.raises(FetchError, match="no whole archive"):
        fetch(f"{web.url}/broken.tar.gz", tmp_path / "b")
    assert names(tmp_path / "b") == []


def test_an_archive_that_was_broken_is_fetched_anew_once_it_is_whole(web: Any, tmp_path: Path) -> None:
    """And what was unpacked by somebody who was killed is not taken for the model."""
    packed = archive_of("echo/1/model.py")
    web.files["/m.tar.gz"] = packed[:-1000]
    with pytest.raises(FetchError):
        fetch(f"{web.url}/m.tar.gz", tmp_path)
    web.files["/m.tar.gz"] = packed
    half = Staging(f"{web.url}/m.tar.gz", tmp_path).unpacked()
    (half / "echo").write_text("half")
    fetch(f"{web.url}/m.tar.gz", tmp_path)
    assert names(tmp_path) == ["echo/1/model.py"]


def test_a_disk_that_would_become_full_is_said_before_the_first_byte(
    web: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    web.files["/model.onnx"] = DATA
    monkeypatch.setattr("storage_initializer.room.shutil.disk_usage", lambda at: type("Use", (), {"free": 1000})())
    with pytest.raises(FetchError, match="300000 bytes are needed, 1000 are free"):
        fetch(f"{web.url}/model.onnx", tmp_path)
    assert sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file()) == 0


def test_a_disk_that_becomes_full_is_said_and_not_tried_again(web: Any, tmp_path: Path, started: Started) -> None:
    web.files["/model.onnx"] = DATA

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    process = started(f"{web.url}/model.onnx", str(tmp_path / "m"), preexec_fn=small)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1 and said.startswith("no room in ")
    assert len(web.asked) == 1 and not (tmp_path / "m" / "model.onnx").exists()


def test_who_is_killed_in_the_midst_goes_on_where_it_was(web: Any, tmp_path: Path, started: Started) -> None:
    web.files["/model.onnx"], web.cuts, web.hold = DATA, [200_000], threading.Event()
    words = (f"{web.url}/model.onnx", str(tmp_path / "m"))
    first = started(*words)
    assert web.reached.wait(60)
    part = tmp_path / "m" / Staging(words[0], tmp_path / "m").root.name / f"model.onnx{PART}"
    while not part.exists() or part.stat().st_size < 100_000:
        assert first.poll() is None
        time.sleep(0.01)
    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=60)
    have = part.stat().st_size
    web.hold.set()
    second = started(*words)
    said, _ = second.communicate(timeout=60)
    assert second.returncode == 0 and "model.onnx is in" in said
    assert web.asked[-1]["Range"] == f"bytes={have}-"
    assert (tmp_path / "m" / "model.onnx").read_bytes() == DATA
    assert names(tmp_path / "m") == ["model.onnx"]


def test_several_sources_come_into_their_folders_and_the_first_failure_is_said(
    web: Any, tmp_path: Path, started: Started
) -> None:
    web.files["/a.onnx"], web.files["/b.onnx"] = b"a", b"b"
    process = started(f"{web.url}/a.onnx", str(tmp_path / "a"), f"{web.url}/b.onnx", str(tmp_path / "b"))
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert ((tmp_path / "a" / "a.onnx").read_text(), (tmp_path / "b" / "b.onnx").read_text()) == ("a", "b")
    process = started(f"{web.url}/none.onnx", str(tmp_path / "c"))
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said.count("\n")) == (1, 1) and "HTTP 404" in said
    process = started("only-one")
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1 and said.startswith("usage:")
