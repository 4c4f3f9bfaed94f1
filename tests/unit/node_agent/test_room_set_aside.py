"""How a container ended is written though the folder is full: the room for it was set aside when it was claimed."""

import errno
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from node_agent.runtime import shim
from node_agent.runtime.folders import DataFolder
from node_agent.runtime.logs import rotate


def full(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_claim_sets_room_aside_for_both_later_versions(tmp_path: Path) -> None:
    file = tmp_path / "main.1.json"
    assert shim._claim(file, {"attempt": 1})
    assert sorted(one.stat().st_size for one in tmp_path.iterdir() if one != file) == [4096, 4096]
    inodes = {one.stat().st_ino for one in tmp_path.iterdir() if one != file}
    shim._write(file, {"attempt": 1, "pid": 7})
    assert json.loads(file.read_text()) == {"attempt": 1, "pid": 7} and file.stat().st_ino in inodes
    shim._write(file, {"attempt": 1, "pid": 7, "exit_code": 0})
    assert json.loads(file.read_text())["exit_code"] == 0 and file.stat().st_ino in inodes
    assert list(tmp_path.iterdir()) == [file]


def test_an_end_before_the_start_leaves_nothing_behind(tmp_path: Path) -> None:
    file = tmp_path / "main.1.json"
    shim._claim(file, {"attempt": 1})
    shim._write(file, {"attempt": 1, "exit_code": 128})
    assert list(tmp_path.iterdir()) == [file]


def test_a_second_claim_takes_nothing_away_from_the_first(tmp_path: Path) -> None:
    file = tmp_path / "main.1.json"
    assert shim._claim(file, {"attempt": 1, "shim": 1})
    assert not shim._claim(file, {"attempt": 1, "shim": 2})
    assert json.loads(file.read_text())["shim"] == 1 and len(list(tmp_path.iterdir())) == 3


def test_a_claim_without_room_is_no_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        shim._claim(tmp_path / "main.1.json", {"attempt": 1})
    assert list(tmp_path.iterdir()) == []


def test_a_log_that_cannot_be_moved_on_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "main.log"
    log.write_bytes(b"x" * 100)
    monkeypatch.setattr(shutil, "copyfileobj", full)
    assert not rotate(log, 10, 3)
    assert log.read_bytes() == b"x" * 100 and list(tmp_path.iterdir()) == [log]


def test_the_boot_is_remembered_though_it_cannot_be_noted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the next start would take the machine for one that was started anew, and every pod for lost."""
    data = DataFolder(tmp_path)
    assert not data.note_boot()
    monkeypatch.setattr(Path, "write_text", full)
    assert not data.note_boot() and not data.note_boot()
    (tmp_path / "boot_id").unlink()
    (tmp_path / "boot_id").touch()
    assert not data.note_boot()
