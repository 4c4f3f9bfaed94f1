"""What a HorizontalPodAutoscaler was answered before, and when it last changed the size: what its windows look back at."""

from dataclasses import dataclass, field

from kube import Manifest


@dataclass(slots=True)
class Run:
    """The same answer, given at each look from ``first`` to ``last``. None is the answer of a time when nothing was known."""

    first: int
    last: int
    replicas: int | None


@dataclass(slots=True)
class History:
    """Of one autoscaler. It outlives a restart, since no fact tells it.

    ``changes`` are (when, by how many). ``generation`` is the one of the object that was looked at last.
    """

    uid: str
    generation: int = -1
    answers: list[Run] = field(default_factory=list)
    changes: list[tuple[int, int]] = field(default_factory=list)

    def note(self, now: int, replicas: int | None) -> bool:
        """Note an answer, or that there was none; whether it is another than before."""
        if self.answers and self.answers[-1].replicas == replicas:
            self.answers[-1].last = now
            return False
        self.answers.append(Run(now, now, replicas))
        return True

    def resume(self, at: int) -> None:
        """What was answered last was answered again up to ``at``, when the last round was.

        An answer that stays is not written down at each look, and after a while not even looked for.
        """
        if self.answers:
            self.answers[-1].last = max(self.answers[-1].last, at)

    def is_settled(self, now: int, horizon_ms: int) -> bool:
        """Whether windows and periods that reach back no further than ``horizon_ms`` see one and the same from now on."""
        since = now - horizon_ms
        return all(run.last < since for run in self.answers[:-1]) and all(at <= since for at, _ in self.changes)

    def rewind(self, now: int) -> None:
        """The time was set back to ``now``: nothing was later."""
        for run in self.answers:
            run.first, run.last = min(run.first, now), min(run.last, now)
        self.changes = [(min(at, now), change) for at, change in self.changes]

    def since(self, cutoff: int) -> list[int]:
        """The answers that were given at ``cutoff`` or later."""
        return [run.replicas for run in self.answers if run.replicas is not None and run.last >= cutoff]

    def added(self, since: int) -> int:
        """How many replicas came after ``since``, not counting those that went."""
        return sum(change for at, change in self.changes if at > since and change > 0)

    def removed(self, since: int) -> int:
        """How many replicas went after ``since``, not counting those that came."""
        return -sum(change for at, change in self.changes if at > since and change < 0)

    def forget(self, before: int) -> None:
        """Drop what no window reaches back to any more."""
        if self.changes and self.changes[0][0] <= before:
            self.changes = [one for one in self.changes if one[0] > before]
        if len(self.answers) > 1 and self.answers[0].last < before:
            self.answers = [run for run in self.answers[:-1] if run.last >= before] + self.answers[-1:]

    def manifest(self) -> Manifest:
        """As it is written down."""
        answers = [[run.first, run.last, run.replicas] for run in self.answers]
        return {"uid": self.uid, "generation": self.generation, "answers": answers, "changes": [*self.changes]}

    @classmethod
    def of(cls, told: Manifest) -> "History":
        """As it was written down."""
        answers = [Run(first, last, replicas) for first, last, replicas in told["answers"]]
        changes = [(at, change) for at, change in told["changes"]]
        return cls(str(told["uid"]), int(told["generation"]), answers, changes)
