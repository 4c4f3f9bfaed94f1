"""The log files of containers, with the times beside them: kept from growing without bound, and set aside."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from node_agent.runtime.log_times import times_of

_CHUNK = 64 << 10


def rotate(file: Path, limit_bytes: int, keep: int) -> bool:
    """Move what is in ``file`` to ``file.1`` when it, or its times, are over the limit, and older ones on.

    ``keep`` files stay in all. The file itself is copied and cut, for the container goes on writing to it. Whether it was over
    the limit.
    """
    if max(_size_of(file), _size_of(times_of(file))) <= limit_bytes:
        return False
    try:
        _move_on(file, keep)
    except OSError:  # no room for the copy: the container goes on writing to the file as it is
        _numbered(file, 1).unlink(missing_ok=True)
        return False
    return True


def _move_on(file: Path, keep: int) -> None:
    for number in range(keep - 2, 0, -1):
        older = _numbered(file, number)
        if older.exists():
            _move(older, _numbered(file, number + 1))
    with file.open("r+b", buffering=0) as source, _numbered(file, 1).open("wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
        # What came while it was copied is read again: only a line written between these two calls is lost.
        shutil.copyfileobj(source, target, _CHUNK)
        _move_times(file, _numbered(file, 1))
        os.ftruncate(source.fileno(), 0)


def _size_of(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _move(log: Path, target: Path) -> None:
    log.replace(target)
    _move_times(log, target)


def _move_times(log: Path, target: Path) -> None:
    try:
        times_of(log).replace(times_of(target))
    except FileNotFoundError:  # nobody noted any: those of what was there before say nothing of it
        times_of(target).unlink(missing_ok=True)


def previous_of(file: Path) -> Path:
    """Where the log of the attempt before is."""
    return file.with_name(f"{file.name}.previous")


def set_aside(file: Path) -> None:
    """Another attempt begins: what the last one wrote is kept, instead of what the one before that did."""
    if not file.exists():
        return
    previous = previous_of(file)
    for old in list(newest_first(previous)):
        old.unlink()
        times_of(old).unlink(missing_ok=True)
    for number, part in enumerate(list(newest_first(file))):
        _move(part, _numbered(previous, number) if number else previous)


def message_of(file: Path, most_bytes: int) -> str:
    """The end of a log as a message, at most ``most_bytes`` of it; "" when there is none."""
    try:
        with file.open("rb") as stream:
            stream.seek(max(0, file.stat().st_size - most_bytes))
            return stream.read().decode(errors="replace").strip()
    except OSError:
        return ""


def newest_first(file: Path) -> Iterator[Path]:
    """The files of a log: the one that is written to, and those that it was rotated to."""
    if file.exists():
        yield file
    number = 1
    while _numbered(file, number).exists():
        yield _numbered(file, number)
        number += 1


def _numbered(file: Path, number: int) -> Path:
    return file.with_name(f"{file.name}.{number}")


def prune(root: Path, kept: set[str], before_ms: int) -> None:
    """Remove the log folders of pods other than ``kept`` (uids) in which nothing was written since ``before_ms``."""
    for folder in root.iterdir():
        if folder.name.rpartition("_")[2] in kept:
            continue
        newest = max((file.stat().st_mtime for file in folder.iterdir()), default=0.0)
        if newest * 1000 < before_ms:
            shutil.rmtree(folder, ignore_errors=True)
