"""``file://`` and plain paths: what lies on this machine already is linked and not copied; an archive is unpacked."""

import shutil
from pathlib import Path

from storage_initializer.archives import is_archive
from storage_initializer.failures import FetchError
from storage_initializer.room import check_room, saying_full
from storage_initializer.staging import Staging


def fetch(path: Path, staging: Staging) -> None:
    """Show ``path`` (a file, or all that is in a folder) in the model's folder. Raises FetchError."""
    if not path.is_absolute():
        raise FetchError(f"{path} is no absolute path")
    try:
        entries = sorted(path.iterdir()) if path.is_dir() else [path]
        for entry in entries:
            entry.stat()
    except OSError as error:
        raise FetchError(f"{path}: {error.strerror}") from None
    if not entries:
        raise FetchError(f"{path} is empty")
    if len(entries) == 1 and entries[0].is_file() and is_archive(entries[0].name):
        check_room(staging.root, entries[0].stat().st_size)
        with saying_full(staging.root):
            shutil.copyfile(entries[0], staging.file(entries[0].name))
        return
    for entry in entries:
        place = staging.file(entry.name)
        place.unlink(missing_ok=True)
        place.symlink_to(entry)
