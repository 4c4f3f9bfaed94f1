"""The log files of containers: read from their end, followed, and kept from growing without bound."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

CHUNK = 64 << 10
# How often a log that somebody follows is looked at. Nothing is looked at while nobody does.
FOLLOW_SECONDS = 0.1


def rotate(file: Path, limit_bytes: int, keep: int) -> bool:
    """Move what is in ``file`` to ``file.1`` when it is over the limit, and older ones on; ``keep`` files stay in all.

    The file itself is copied and cut, for the container goes on writing to it. Whether it was over the limit.
    """
    try:
        if file.stat().st_size <= limit_bytes:
            return False
    except OSError:
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
            older.replace(_numbered(file, number + 1))
    with file.open("r+b", buffering=0) as source, _numbered(file, 1).open("wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
        # What came while it was copied is read again: only a line written between these two calls is lost.
        shutil.copyfileobj(source, target, CHUNK)
        os.ftruncate(source.fileno(), 0)


def previous_of(file: Path) -> Path:
    """Where the log of the attempt before is."""
    return file.with_name(f"{file.name}.previous")


def set_aside(file: Path) -> None:
    """Another attempt begins: what the last one wrote is kept, instead of what the one before that did."""
    if not file.exists():
        return
    previous = previous_of(file)
    for old in list(_newest_first(previous)):
        old.unlink()
    for number, part in enumerate(list(_newest_first(file))):
        part.replace(_numbered(previous, number) if number else previous)


def tail_of(file: Path, lines: int | None) -> tuple[bytes, int]:
    """The last ``lines`` lines (None: all) of a log with the files that it was rotated to, and where its end is."""
    parts: list[bytes] = []
    position, found = 0, 0
    for index, part in enumerate(_newest_first(file)):
        data = part.read_bytes() if lines is None else _end_of(part, lines - found)
        if index == 0:
            position = part.stat().st_size if lines is not None else len(data)
        parts.insert(0, data)
        found += data.count(b"\n")
        if lines is not None and found >= lines:
            break
    return b"".join(parts), position


def older_end(file: Path, most_bytes: int) -> bytes:
    """The end of what was rotated away from ``file``, at most ``most_bytes`` of it."""
    parts: list[bytes] = []
    left = most_bytes
    for part in _newest_first(file):
        if part == file or not left:
            continue
        with part.open("rb") as stream:
            stream.seek(max(0, part.stat().st_size - left))
            parts.insert(0, stream.read(left))
        left -= len(parts[0])
    return b"".join(parts)


def piece(file: Path, position: int) -> tuple[bytes, int]:
    """What stands behind ``position``, at most one chunk of it, and where to go on."""
    for after, chunk in _read_from(file, position):
        return chunk, after
    return b"", position


async def follow(file: Path, position: int, ended: Callable[[], bool]) -> AsyncIterator[bytes]:
    """What is written to ``file`` after ``position``, until ``ended`` says that no more will come."""
    while True:
        over = ended()
        for chunk in _read_from(file, position):
            position = chunk[0]
            yield chunk[1]
        if over:
            return
        await asyncio.sleep(FOLLOW_SECONDS)


def message_of(file: Path, most_bytes: int) -> str:
    """The end of a log as a message, at most ``most_bytes`` of it; "" when there is none."""
    try:
        with file.open("rb") as stream:
            stream.seek(max(0, file.stat().st_size - most_bytes))
            return stream.read().decode(errors="replace").strip()
    except OSError:
        return ""


def _read_from(file: Path, position: int) -> Iterator[tuple[int, bytes]]:
    try:
        with file.open("rb") as stream:
            if os.fstat(stream.fileno()).st_size < position:  # it was rotated
                position = 0
            stream.seek(position)
            while chunk := stream.read(CHUNK):
                position += len(chunk)
                yield position, chunk
    except FileNotFoundError:
        return


def _end_of(file: Path, lines: int) -> bytes:
    if lines <= 0:
        return b""
    with file.open("rb") as stream:
        start = stream.seek(0, os.SEEK_END)
        data = b""
        while start > 0 and data.count(b"\n") <= lines:
            step = min(CHUNK, start)
            start -= step
            stream.seek(start)
            data = stream.read(step) + data
    return b"".join(data.splitlines(keepends=True)[-lines:])


def _newest_first(file: Path) -> Iterator[Path]:
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
