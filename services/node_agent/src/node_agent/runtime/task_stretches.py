"""How often tasks gave up their CPU by themselves: with the CPU time that they used, for how long they compute at a time.

What answers requests waits for the next one: it is the CPU that a request takes, or some of them that came together.
"""

from collections.abc import Iterable

from node_agent.runtime.tasks import read_of, tasks_of

MOST_TASKS = 64
"""So many are looked at in one round, at 20 µs each. Of a pod with more than are left nothing is told."""
_WAITS = b"\nvoluntary_ctxt_switches:"


class TaskStretches:
    """Adds up, for each group, how often its tasks have begun to wait."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._next: dict[str, int] = {}
        self._total: dict[str, int] = {}

    def begin(self) -> None:
        """A round begins: tasks that are not seen in it are forgotten."""
        self._known, self._next = self._next, {}

    def waits(self, key: str, processes: Iterable[int]) -> int | None:
        """How often tasks of ``processes`` have begun to wait since they were seen first; None where they are too many."""
        tasks = list(tasks_of(processes))
        if len(self._next) + len(tasks) > MOST_TASKS:
            return None
        for task in tasks:
            count = _waits(task)
            self._next[task] = count
            self._total[key] = self._total.get(key, 0) + max(0, count - self._known.get(task, count))
        return self._total.get(key, 0)


def _waits(task: str) -> int:
    try:
        return int(read_of(task, "status").partition(_WAITS)[2].split(b"\n", 1)[0])
    except ValueError:
        return 0
