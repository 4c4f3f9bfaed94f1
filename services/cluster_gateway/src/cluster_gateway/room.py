"""Whether the data folder has room for more: what users ask for is refused before what runs already can be hurt."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Room:
    """``reserve_bytes`` of ``folder``'s file system are kept for what the cluster has to note of what is there already."""

    folder: Path
    reserve_bytes: int

    def complaint(self) -> str:
        """Why nothing more can be taken in; empty while there is room."""
        try:
            found = os.statvfs(self.folder)
        except OSError as error:
            return f"the data folder {self.folder} cannot be looked at: {error.strerror}"
        free = found.f_bavail * found.f_frsize
        if free >= self.reserve_bytes:
            return ""
        have, need = (f"{amount / (1 << 20):.0f} MiB" for amount in (free, self.reserve_bytes))
        return f"the data folder {self.folder} is full: {have} are free, {need} are needed to take in more; make room and try again"
