"""A folder beside the model's place in which it is gathered: only what is whole is moved to where the server looks.

A file that is on its way ends with ``PART``. Who comes back after a crash finds it, and goes on from there.
"""

import shutil
from hashlib import sha256
from pathlib import Path, PurePosixPath

from storage_initializer.failures import FetchError

PREFIX = ".storage-initializer-"
PART = ".storage-initializer-part"


class Staging:
    """Where the model of ``uri`` is gathered on its way to ``folder``; the same at every try."""

    def __init__(self, uri: str, folder: Path) -> None:
        self.folder = folder
        self.root = folder / f"{PREFIX}{sha256(uri.encode()).hexdigest()[:16]}"
        self.root.mkdir(parents=True, exist_ok=True)

    def file(self, name: str) -> Path:
        """The place of the file ``name`` of the model, its folders made. Raises FetchError for one outside of the model."""
        path = PurePosixPath(name)
        if path.is_absolute() or not path.parts or ".." in path.parts or "\x00" in name:
            raise FetchError(f"{name!r} is no place inside of a model")
        found = self.root / path
        try:
            found.parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise FetchError(f"{name!r} lies below a file of the model") from None
        return found

    def unpacked(self) -> Path:
        """An empty folder for what an archive holds, beside the archive itself: who is killed unpacks it again."""
        found = self.root.with_name(f"{self.root.name}-unpacked")
        shutil.rmtree(found, ignore_errors=True)
        found.mkdir()
        return found

    def publish(self, gathered: Path) -> None:
        """Move what is in ``gathered`` to where the server looks, over what may be there from before."""
        for part in sorted(gathered.rglob(f"*{PART}")):
            part.unlink()
        for entry in sorted(gathered.iterdir()):
            target = self.folder / entry.name
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            elif target.is_symlink() or target.exists():
                target.unlink()
            entry.rename(target)
        self.discard(gathered)

    def discard(self, gathered: Path) -> None:
        """Remove all of it."""
        for folder in {gathered, self.root}:
            shutil.rmtree(folder, ignore_errors=True)
