"""How long tasks waited for a CPU, where the kernel does not count it by group (cgroup version 1): by each task's schedstat."""

from collections.abc import Iterable

from node_agent.runtime.tasks import read_of, tasks_of

MOST_TASKS = 256
"""So many are looked at in one round: of a node with more the rest is not told of."""


class TaskWaits:
    """Adds up, for each group, the longest wait of a task of it in each round: as long at least some task of it waited."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._next: dict[str, int] = {}
        self._total_us: dict[str, int] = {}

    def begin(self) -> None:
        """A round begins: tasks that are not seen in it are forgotten."""
        self._known, self._next = self._next, {}

    def waited_us(self, key: str, processes: Iterable[int]) -> int:
        """For how long some task of ``processes`` has waited, since they were seen first."""
        longest = 0
        for task in tasks_of(processes):
            if len(self._next) >= MOST_TASKS:
                break
            waited = _waited_ns(task)
            self._next[task] = waited
            longest = max(longest, waited - self._known.get(task, waited))
        self._total_us[key] = self._total_us.get(key, 0) + longest // 1000
        return self._total_us[key]


def _waited_ns(task: str) -> int:
    try:
        return int(read_of(task, "schedstat").split()[1])
    except (IndexError, ValueError):
        return 0
