"""What happened to a ScaledObject so far, as far as its next steps depend on it."""

from dataclasses import dataclass, field

from kube import Manifest


@dataclass(slots=True)
class Course:
    """It outlives a restart. ``failures`` counts by metric how often in a row its source said nothing.

    ``last_active`` is the last poll at which a trigger was active; it is not written down at each poll while it ``is_active``.
    """

    uid: str
    version: str = ""
    """Of the object that was polled last."""

    is_active: bool = False
    last_active: int | None = None
    failures: dict[str, int] = field(default_factory=dict)

    def polled(self, active: bool, now: int) -> bool:
        """Take in what a poll said; whether it is another thing than before."""
        turned = active != self.is_active
        self.is_active = active
        if active:
            self.last_active = now
        return turned

    def resume(self, at: int) -> None:
        """What was active was so up to ``at``, when the last poll was: while nothing changes nobody is polled."""
        if self.is_active:
            self.last_active = max(self.last_active or 0, at)

    def rewind(self, now: int) -> None:
        """The time was set back to ``now``: nothing was later."""
        if self.last_active is not None:
            self.last_active = min(self.last_active, now)

    def count(self, metric: str, failed: bool, most: int) -> bool:
        """Count a failure, as far as ``most``, or forget them; whether that changed anything."""
        before = self.failures.get(metric, 0)
        after = min(before + 1, most) if failed else 0
        if after:
            self.failures[metric] = after
        else:
            self.failures.pop(metric, None)
        return before != after

    def manifest(self) -> Manifest:
        """As it is written down."""
        return {
            "uid": self.uid,
            "version": self.version,
            "active": self.is_active,
            "lastActive": self.last_active,
            "failures": {**self.failures},
        }

    @classmethod
    def of(cls, told: Manifest) -> "Course":
        """As it was written down."""
        return cls(told["uid"], told["version"], told["active"], told["lastActive"], {**told["failures"]})
