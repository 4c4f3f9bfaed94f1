"""How long tasks waited for a CPU, where the kernel does not count it by group (cgroup version 1): by each task's schedstat."""

import os
from collections.abc import Iterable

MOST_TASKS = 256
"""So many are looked at in one round: of a node with more the rest is not told of."""


class TaskWaits:
    """Adds up, for each group, the longest wait of a task of it in each round: as long at least some task of it waited."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}
        self._next: dict[int, int] = {}
        self._total_us: dict[str, int] = {}

    def begin(self) -> None:
        """A round begins: tasks that are not seen in it are forgotten."""
        self._known, self._next = self._next, {}

    def waited_us(self, key: str, processes: Iterable[int]) -> int:
        """For how long some task of ``processes`` has waited, since they were seen first."""
        longest = 0
        for process in processes:
            for task in _tasks(process):
                if len(self._next) >= MOST_TASKS:
                    break
                waited = _waited_ns(process, task)
                self._next[task] = waited
                longest = max(longest, waited - self._known.get(task, waited))
        self._total_us[key] = self._total_us.get(key, 0) + longest // 1000
        return self._total_us[key]


def _tasks(process: int) -> list[int]:
    try:
        return [int(name) for name in os.listdir(f"/proc/{process}/task")]  # noqa: PTH208  (a Path each costs ten times as much)
    except OSError:
        return []


def _waited_ns(process: int, task: int) -> int:
    try:
        fd = os.open(f"/proc/{process}/task/{task}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        return int(os.read(fd, 128).split()[1])
    except (OSError, IndexError, ValueError):
        return 0
    finally:
        os.close(fd)
