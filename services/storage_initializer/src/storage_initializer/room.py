"""Room on the disk that a model goes to."""

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from storage_initializer.failures import FetchError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def check_room(folder: Path, needed_bytes: int) -> None:
    """Raises FetchError where ``folder`` has less room than ``needed_bytes``: better now than after an hour."""
    free_bytes = shutil.disk_usage(folder).free
    if needed_bytes > free_bytes:
        raise FetchError(f"no room in {folder}: {needed_bytes} bytes are needed, {free_bytes} are free")


@contextmanager
def saying_full(folder: Path) -> Iterator[None]:
    """Turns a disk that became full into a FetchError that says so."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        free_bytes = shutil.disk_usage(folder).free
        raise FetchError(f"no room in {folder}: {error.strerror} ({free_bytes} bytes are free)") from None
