"""The line of a ClusterQueue whose LocalQueues are served by what they have used: the least first, by their weights.

Source: Kueue's AdmissionFairSharing. Each LocalQueue has a line of its own; the head is that of the LocalQueue that is next.
"""

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from kube import Key
from queue_manager.domain.cohorts.flavor_choice import Mode, Verdict
from queue_manager.domain.cohorts.queue_line import QueueLine, Ranks
from queue_manager.domain.workloads.workload import Shape, Workload

Place = tuple[str, str]
"""Namespace and name of a LocalQueue."""


@dataclass(slots=True)
class SharedLine(QueueLine):
    """``use`` says how much a LocalQueue has used, by its weight: whoever has less goes first, of equals by name."""

    use: Callable[[Place], int] = field(default=lambda place: 0)
    _lines: dict[Place, QueueLine] = field(default_factory=dict)
    _places: dict[Shape, dict[Place, None]] = field(default_factory=dict)
    """The LocalQueues in which somebody of a shape waits."""

    def put(self, workload: Workload) -> None:
        """A workload joins."""
        place = (workload.key.namespace, workload.local_queue)
        line = self._lines.get(place)
        if line is None:
            line = self._lines[place] = QueueLine(self.name, self.strict)
        self.members[workload.key] = workload
        self._places.setdefault(workload.shape, {})[place] = None
        line.put(workload)
        self._gather(workload.shape)

    def drop(self, key: Key) -> None:
        """A workload leaves."""
        workload = self.members.pop(key)
        self._lines[workload.key.namespace, workload.local_queue].drop(key)
        self._gather(workload.shape)

    def head(self) -> Workload | None:
        """The first of the LocalQueue that has used the least and has somebody for whom there may be quota."""
        for line in self._in_order():
            found = line.head()
            if found is not None or line.blocker() is not None:
                return found
        return None

    def fail(self, shape: Shape, verdict: Verdict) -> None:
        """Nobody of the shape finds quota until something changes, whatever the LocalQueue."""
        for line in self._with(shape):
            line.fail(shape, verdict)

    def look_again(self, at_least: Mode = Mode.NO_FIT) -> bool:
        """There may be quota now for those who failed by a verdict of ``at_least`` this mode; returns whether there are any."""
        found = [line.look_again(at_least) for line in self._lines.values()]
        return any(found)

    def blocker(self) -> Workload | None:
        """In a strict queue the head that keeps all others waiting."""
        if not self.strict or self.head() is not None:
            return None
        return next((found for line in self._in_order() if (found := line.blocker()) is not None), None)

    def to_tell(self, shape: Shape, verdict: Verdict, now: int, busy: AbstractSet[Key]) -> list[Workload]:
        """Those of a shape who are to be told ``verdict``."""
        return [found for line in self._with(shape) for found in line.to_tell(shape, verdict, now, busy)]

    def _in_order(self) -> list[QueueLine]:
        return [self._lines[place] for place in sorted(self._lines, key=lambda place: (self.use(place), place))]

    def _with(self, shape: Shape) -> Iterator[QueueLine]:
        """The lines in which somebody of the shape is."""
        for place in list(self._places.get(shape, ())):
            if shape in self._lines[place].ranks:
                yield self._lines[place]

    def _gather(self, shape: Shape) -> None:
        """``ranks`` knows every shape that is in any line, by the entry of the first of them."""
        for place in list(self._places.get(shape, ())):
            found: Ranks | None = self._lines[place].ranks.get(shape)
            if found is not None:
                self.ranks[shape] = found
                return
            del self._places[shape][place]
        self.ranks.pop(shape, None)
        self._places.pop(shape, None)
