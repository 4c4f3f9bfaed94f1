"""Gives back what rules took from pods, when nobody has kept these rules for a while.

An agent that is killed and never comes back must leave no pod throttled for ever. So it says in a file what to write where, and
sets the file's time every few seconds, in seconds since boot: that clock does not jump. This is a program of its own, which
outlives the agent; it ends when the file is gone, and there is one for each file. Standard library only, started by
``python -I -S``.
"""

import fcntl
import json
import os
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

GIVE_BACK_SECONDS = 300
"""After so long without anybody who keeps the rules."""
_LOOK_SECONDS = 1.0


class Raw(NamedTuple):
    """One write to the kernel. ``below``: to the file of that name of all groups below too, after the one above them."""

    path: str
    text: str
    below: bool = False


class Run(NamedTuple):
    """One command to run, its program by its whole path."""

    words: tuple[str, ...]


Step = Raw | Run


def since_boot_ns() -> int:
    """The time since the machine was started, sleep included."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def give_back(steps: Iterable[Step]) -> None:
    """Do all; what is gone, or refused, is passed over."""
    for one in steps:
        if isinstance(one, Run):
            _run(one.words)
            continue
        folder, _, name = one.path.rpartition("/")
        for group in [above for above, _, _ in os.walk(folder)] if one.below else [folder]:
            _write(f"{group}/{name}", one.text)


def read(file: Path) -> list[Step]:
    """What the file says; nothing where it is not there, or says nothing that can be read."""
    try:
        return [_step(one) for one in json.loads(file.read_text())]
    except (OSError, TypeError, ValueError):
        return []


def _step(one: list[Any]) -> Step:
    if len(one) == 1:
        return Run(tuple(str(word) for word in one[0]))
    path, text, below = one
    return Raw(str(path), str(text), bool(below))


def is_guarded(file: Path) -> bool:
    """Whether a guard runs for ``file``."""
    try:
        with _lock_of(file).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


class Guard:
    """The guard of one file, as its agent sees it."""

    def __init__(self, file: Path, seconds: float = GIVE_BACK_SECONDS) -> None:
        self._file, self._seconds = file, seconds
        self._child = 0

    def stand(self) -> None:
        """See that there is one: that of a predecessor goes on."""
        if is_guarded(self._file) or (self._child and os.waitpid(self._child, os.WNOHANG) == (0, 0)):
            return
        words = [sys.executable, "-I", "-S", __file__, str(self._file), str(self._seconds)]
        null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
        self._child = os.posix_spawn(sys.executable, words, {}, file_actions=null, setsid=True)

    def dismiss(self) -> None:
        """End it, whoever started it."""
        if is_guarded(self._file):
            with suppress(OSError, ValueError):
                os.kill(int(_lock_of(self._file).read_text()), signal.SIGTERM)
        if self._child:
            with suppress(OSError):
                os.kill(self._child, signal.SIGTERM)
                os.waitpid(self._child, 0)
            self._child = 0


def main(file: Path, seconds: float) -> None:
    """Guard until the file is gone, or was not kept for ``seconds``."""
    os.chdir("/")
    with _lock_of(file).open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return  # there is one
        lock.truncate(0)
        lock.write(b"%d" % os.getpid())
        lock.flush()
        while (kept_at := _kept_at(file)) is not None:
            if since_boot_ns() - kept_at >= seconds * 1e9:
                give_back(read(file))
                file.unlink(missing_ok=True)
                return
            time.sleep(_LOOK_SECONDS)


def _kept_at(file: Path) -> int | None:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return None


def _lock_of(file: Path) -> Path:
    return file.with_name(f"{file.name}.lock")


def _run(words: tuple[str, ...]) -> None:
    null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    with suppress(OSError):
        os.waitpid(os.posix_spawn(words[0], words, {}, file_actions=null), 0)


def _write(file: str, text: str) -> None:
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    except OSError:
        return
    try:
        os.write(descriptor, text.encode())
    except OSError:
        return
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
