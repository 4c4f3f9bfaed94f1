"""What happened to an autoscaler with a goal so far, as far as its sizes depend on it and no fact tells it."""

from dataclasses import dataclass, field

from inference_autoscaler.domain.knative.load import Load
from inference_autoscaler.domain.target.aim import STALE_MS, Pursuit
from kube import Manifest


@dataclass(slots=True)
class Record:
    """It outlives a restart. The first sample holds since the object was made."""

    uid: str
    born: int
    came: Load
    in_flight: Load
    pursuit: Pursuit = field(default_factory=Pursuit)

    @classmethod
    def begun(cls, uid: str, at: int) -> "Record":
        """Of an object that was met at ``at`` for the first time."""
        return cls(uid, at, Load(heard=at), Load(heard=at))

    @property
    def is_quiet(self) -> bool:
        """Whether nothing but zero was heard last."""
        return all(not load.runs or load.runs[-1][2] == 0 for load in (self.came, self.in_flight))

    def forget(self, now: int) -> None:
        """Samples that were taken into the past of the goal are not needed any more."""
        for load in (self.came, self.in_flight):
            load.forget(now - STALE_MS)

    def learned(self) -> tuple[object, ...]:
        """What looks leave behind: it differs where there is something new to be written down."""
        return self.pursuit.watch.heard, self.pursuit.starts.manifest(), len(self.came.runs), len(self.in_flight.runs)

    def rewind(self, now: int) -> None:
        """The time was set back to ``now``: nothing was later."""
        self.born = min(self.born, now)
        for load in (self.came, self.in_flight):
            load.rewind(now)
        self.pursuit.watch.rewind(now)

    def manifest(self) -> Manifest:
        """As it is written down."""
        return {
            "uid": self.uid,
            "born": self.born,
            "came": self.came.manifest(),
            "inFlight": self.in_flight.manifest(),
            "pursuit": self.pursuit.manifest(),
        }

    @classmethod
    def of(cls, told: Manifest) -> "Record":
        """As it was written down."""
        pursuit = Pursuit.of(told["pursuit"])
        return cls(told["uid"], told["born"], Load.of(told["came"]), Load.of(told["inFlight"]), pursuit)
