"""Puts parts of the cache and of the memory bandwidth in force, where resctrl is mounted."""

import logging
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from node_agent.domain.colocation.resctrl import Schemata

_log = logging.getLogger(__name__)

MOUNT = Path("/sys/fs/resctrl")
OURS = "tidegate-"
"""Begins the names of the groups that are made here: others may have made some of their own."""


class CacheGroups:
    """Makes groups, writes their parts, and puts tasks into them; a group that nobody wants any more is removed."""

    def __init__(self, tasks: Callable[[str], Iterable[int]], mount: Path = MOUNT) -> None:
        """``tasks`` tells the processes of a pod by its uid."""
        self._tasks, self._mount = tasks, mount
        self._written: dict[str, tuple[str, ...]] = {one.name.removeprefix(OURS): () for one in mount.glob(f"{OURS}*")}
        """By group, those that a predecessor has left included."""
        self._placed: dict[int, str] = {}
        self._refused: set[str] = set()

    def write(self, wanted: Schemata) -> None:
        """Bring all groups to what is ``wanted``. What the hardware refuses is told once."""
        if not wanted.lines and not self._written:
            return
        for name, lines in wanted.lines.items():
            self._try(name, partial(self._limit, name, lines))
        placed: dict[int, str] = {}
        for name, uids in wanted.members.items():
            for task in (task for uid in uids for task in self._tasks(uid)):
                placed[task] = name
                if self._placed.get(task) != name:
                    self._try(f"{name} {task}", partial(self._place, name, task))
        self._placed = placed
        for name in [name for name in self._written if name not in wanted.lines]:
            # Tasks of a group that is removed are back in the first one, which has all.
            self._try(name, partial(self._remove, name))

    def _limit(self, name: str, lines: tuple[str, ...]) -> None:
        if self._written.get(name) == lines:
            return
        self._folder(name).mkdir(exist_ok=True)
        self._written[name] = ()  # it is there, whatever the hardware takes of it
        for line in lines:
            (self._folder(name) / "schemata").write_text(f"{line}\n")
        self._written[name] = lines
        self._refused.discard(name)

    def _remove(self, name: str) -> None:
        self._folder(name).rmdir()
        del self._written[name]

    def _place(self, name: str, task: int) -> None:
        (self._folder(name) / "tasks").write_text(str(task))

    def _folder(self, name: str) -> Path:
        return self._mount / f"{OURS}{name}"

    def _try(self, what: str, write: Callable[[], None]) -> None:
        try:
            write()
        except ProcessLookupError:  # it has ended
            return
        except OSError as error:
            if what not in self._refused:
                self._refused.add(what)
                _log.warning("cache_part_not_in_force", extra={"group": what, "error": str(error.strerror)})
