"""What happened to an InferenceService so far, as far as its sizes depend on it and no fact tells it."""

from collections.abc import Collection
from dataclasses import dataclass, field

from inference_autoscaler.domain.knative.bounds import Life
from inference_autoscaler.domain.knative.decider import Panic
from inference_autoscaler.domain.knative.load import Load
from inference_autoscaler.domain.rollout.tally import Counts, Tally
from inference_autoscaler.domain.rollout.trial import Trial
from inference_autoscaler.domain.target.aim import Pursuit
from kube import Manifest


@dataclass(slots=True)
class Past:
    """Of one revision."""

    panic: Panic = field(default_factory=Panic)
    life: Life = field(default_factory=Life)


@dataclass(slots=True)
class Course:
    """It outlives a restart. ``loads`` is what the service bore, by metric; ``pasts`` and ``tallies`` are by revision."""

    uid: str
    born: int
    loads: dict[str, Load] = field(default_factory=dict)
    pasts: dict[str, Past] = field(default_factory=dict)
    tallies: dict[str, Tally] = field(default_factory=dict)
    trial: Trial | None = None
    pursuit: Pursuit | None = None
    """Of a service that has a goal."""

    def load(self, metric: str) -> Load:
        """What is known of one metric; the first sample holds since the service was made."""
        return self.loads.setdefault(metric, Load(heard=self.born))

    def past(self, revision: str) -> Past:
        return self.pasts.setdefault(revision, Past())

    def counts(self, revision: str) -> Counts:
        """What a revision answered so far, as it stands."""
        tally = self.tallies.get(revision)
        return {**tally.total} if tally is not None else {}

    def forget(self, before: int, metrics: Collection[str]) -> None:
        """Of ``metrics`` what no window reaches back to any more, and of others everything: nobody goes by them."""
        for metric in self.loads.keys() - metrics:
            del self.loads[metric]
        for load in self.loads.values():
            load.forget(before)

    def is_quiet(self) -> bool:
        """Whether nothing but zero was heard last."""
        return all(not load.runs or load.runs[-1][2] == 0 for load in self.loads.values())

    def rewind(self, now: int) -> None:
        """The time was set back to ``now``: nothing was later."""
        self.born = min(self.born, now)
        for load in self.loads.values():
            load.rewind(now)
        for past in self.pasts.values():
            past.panic.rewind(now)
            past.life.rewind(now)
        if self.trial is not None:
            self.trial.rewind(now)
        if self.pursuit is not None:
            self.pursuit.watch.rewind(now)

    def manifest(self) -> Manifest:
        """As it is written down."""
        return {
            "uid": self.uid,
            "born": self.born,
            "loads": {name: load.manifest() for name, load in self.loads.items()},
            "tallies": {name: tally.manifest() for name, tally in self.tallies.items()},
            "pursuit": self.pursuit.manifest() if self.pursuit is not None else None,
            **self.decided(),
        }

    def decided(self) -> Manifest:
        """What looks leave behind; nothing of it changes later."""
        pasts = {
            name: {"panic": past.panic.manifest(), "life": past.life.manifest()} for name, past in self.pasts.items()
        }
        heard = (self.pursuit.watch.heard, self.pursuit.starts.manifest()) if self.pursuit is not None else None
        return {"pasts": pasts, "trial": self.trial.manifest() if self.trial is not None else None, "heard": heard}

    @classmethod
    def of(cls, told: Manifest) -> "Course":
        """As it was written down."""
        loads = {name: Load.of(load) for name, load in told["loads"].items()}
        pasts = {name: Past(Panic.of(past["panic"]), Life.of(past["life"])) for name, past in told["pasts"].items()}
        tallies = {name: Tally.of(tally) for name, tally in told.get("tallies", {}).items()}
        trial = Trial.of(told["trial"]) if told.get("trial") is not None else None
        pursuit = Pursuit.of(told["pursuit"]) if told.get("pursuit") is not None else None
        return cls(told["uid"], told["born"], loads, pasts, tallies, trial, pursuit)
