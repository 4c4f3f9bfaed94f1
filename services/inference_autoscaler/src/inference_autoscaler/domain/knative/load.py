"""What a service bore, as runs of time: the sums that windows are made of, exact and small."""

from dataclasses import dataclass, field

from kube import Manifest


@dataclass(slots=True)
class Load:
    """``runs`` are (from, to, thousandths), in order, without overlap: a sample holds for the time since the one before."""

    runs: list[tuple[int, int, int]] = field(default_factory=list)
    heard: int = 0
    """When the newest sample was taken."""

    def add(self, at: int, value_milli: int | None) -> bool:
        """Take in a sample that was taken at ``at``; None says that nothing is known of the time. Whether it is news."""
        if at <= self.heard:
            return False
        start, self.heard = self.heard, at
        if value_milli is None:
            return True
        if self.runs and self.runs[-1][1] == start and self.runs[-1][2] == value_milli:
            start = self.runs.pop()[0]
        self.runs.append((start, at, value_milli))
        return True

    def hear(self, at: int, value_milli: int | None) -> bool:
        """Take in what several sources say together by ``at``. What one of them said late is of the moment after the others'."""
        if at != self.heard or value_milli is None or not self.runs or self.runs[-1][1] != at:
            return self.add(at, value_milli)
        return value_milli != self.runs[-1][2] and self.add(at + 1, value_milli)

    def average(self, since: int, until: int) -> tuple[int, int] | None:
        """The sum over the known part of the time, in thousandths times milliseconds, and how long that is; None if none is."""
        total = known = 0
        for start, end, value in reversed(self.runs):
            if end <= since:
                break
            length = min(end, until) - max(start, since)
            if length > 0:
                total, known = total + value * length, known + length
        return (total, known) if known else None

    def rewind(self, now: int) -> None:
        """The time was set back to ``now``: nothing was later."""
        self.heard = min(self.heard, now)
        self.runs = [(start, min(end, now), value) for start, end, value in self.runs if start < now]

    def forget(self, before: int) -> None:
        """Drop what no window reaches back to any more."""
        self.runs = [run for run in self.runs if run[1] > before]

    def manifest(self) -> Manifest:
        """As it is written down."""
        return {"runs": self.runs, "heard": self.heard}

    @classmethod
    def of(cls, told: Manifest) -> "Load":
        """As it was written down."""
        return cls([(start, end, value) for start, end, value in told["runs"]], int(told["heard"]))
