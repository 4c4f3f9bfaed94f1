"""A wish tried on the books with others gone. What was placed stays there until the books have to show something else."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gang_scheduler.domain.evictions.departure import Departures
from gang_scheduler.domain.pods.pod_record import PodRecord
from gang_scheduler.domain.room.trial import Step, Trial


@dataclass(slots=True)
class Rehearsal:
    """Who is ``gone`` is off the books. Nobody else may change these between the first ``take`` and the end."""

    trial: Trial
    attempt: Callable[[], bool]
    gone: Departures = field(init=False)
    _mark: int = -1
    """Where on the trial the wish came true, -1 while it is not there."""

    def __post_init__(self) -> None:
        self.gone = Departures(self.trial.room)

    def take(self, records: Sequence[PodRecord]) -> None:
        """Off the books with these too."""
        self._retract()
        self.gone.take(records)

    def put_back(self, records: Sequence[PodRecord]) -> None:
        """These stay after all."""
        self._retract()
        self.gone.put_back(records)

    def succeeds(self) -> bool:
        """Whether the wish comes true."""
        if self._mark >= 0:
            return True
        mark = self.trial.checkpoint()
        if self.attempt():
            self._mark = mark
        return self._mark >= 0

    def undo(self) -> None:
        """The books as they were."""
        self._retract()
        self.gone.undo()

    def steps(self) -> list[Step] | None:
        """What makes the wish come true: it stays on the books, and is no part of the trial any more.

        None, and the books as they were, if the wish does not come true.
        """
        if not self.succeeds():
            self.undo()
            return None
        steps = self.trial.since(self._mark)
        del self.trial.steps[self._mark :]
        self._mark = -1
        return steps

    def _retract(self) -> None:
        if self._mark >= 0:
            self.trial.rollback(self._mark)
            self._mark = -1
