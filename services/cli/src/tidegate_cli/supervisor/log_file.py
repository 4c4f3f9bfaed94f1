"""What the parts print, in files that are rotated: a part writes into a pipe, and the supervisor alone into its file."""

import asyncio
import fcntl
import os
from contextlib import suppress
from pathlib import Path

LARGEST_BYTES = 8 << 20
KEPT = 3
"""So many older files are kept beside the newest one: ``x.log.1`` is the youngest of them."""
_PIPE_BYTES = 1 << 20
"""So much may be printed while the supervisor has no time."""
_F_SETPIPE_SZ = 1031
_CHUNK_BYTES = 1 << 16


class RotatedFile:
    """A file that is put aside at the end of a line once it would grow above ``largest_bytes``."""

    def __init__(self, file: Path, largest_bytes: int = LARGEST_BYTES, kept: int = KEPT) -> None:
        self._file, self._largest, self._kept = file, largest_bytes, kept
        self._lost = 0
        self._between_lines = True

    def write(self, data: bytes) -> None:
        """Append ``data``. Where there is no room it is lost, and the next line that finds room says how much was."""
        try:
            if self._lost:
                self._append(b"%d bytes were lost: there was no room for them\n" % self._lost)
                self._lost = 0
            self._put(data)
        except OSError:
            self._lost += len(data)
            self._between_lines = True

    def _put(self, data: bytes) -> None:
        while self._is_full(len(data)):
            if self._between_lines:
                self._rotate()
                break
            rest, newline, behind = data.partition(b"\n")
            self._append(rest + newline)
            if not behind:
                return
            data = behind
        # A piece longer than a whole file goes into one all the same: a line is never lost for its length.
        self._append(data)

    def _is_full(self, more: int) -> bool:
        try:
            size = self._file.stat().st_size
        except FileNotFoundError:
            return False
        return size > 0 and size + more > self._largest

    def _append(self, data: bytes) -> None:
        with self._file.open("ab", buffering=0) as stream:
            left = data
            while left:
                left = left[stream.write(left) :]
        self._between_lines = data.endswith(b"\n")

    def _rotate(self) -> None:
        """Oldest first, so that nothing is lost if it ends half way."""
        for number in range(self._kept, 0, -1):
            younger = self._older(number - 1)
            if younger.exists():
                younger.replace(self._older(number))

    def _older(self, number: int) -> Path:
        return self._file.with_name(f"{self._file.name}.{number}") if number else self._file


class Printing:
    """A pipe for everything that a part prints, over all of its processes."""

    def __init__(self, file: RotatedFile) -> None:
        self._file = file
        self._out, self.into = os.pipe()
        os.set_blocking(self._out, False)
        with suppress(OSError):  # the usual size has to do
            fcntl.fcntl(self.into, _F_SETPIPE_SZ, _PIPE_BYTES)
        asyncio.get_running_loop().add_reader(self._out, self._read)

    def close(self) -> None:
        """Write down what is left in the pipe, and end."""
        asyncio.get_running_loop().remove_reader(self._out)
        while self._read():
            pass
        os.close(self.into)
        os.close(self._out)

    def _read(self) -> bool:
        try:
            data = os.read(self._out, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        self._file.write(data)
        return bool(data)
