"""A service that has a goal: what it says, what it bears, and how many replicas each part of it needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from inference_autoscaler.domain.knative.load import Load
from inference_autoscaler.domain.target.goal import GOAL, SPARE, Goal
from inference_autoscaler.domain.target.plan import Fleet, Plan, plan
from inference_autoscaler.domain.target.start_up import StartUps
from inference_autoscaler.domain.target.watch import Model, Sample, Watch
from kube import Manifest

CAME, IN_FLIGHT = "rps", "concurrency"
"""The metrics of the request path: requests a second, and requests that wait or are answered, both averaged since the sample before."""
STALE_MS = 60_000
"""Nothing is decided by what is older: no news is no zero."""


@dataclass(frozen=True, slots=True)
class Aim:
    """``slots`` are the requests that a replica answers at once, ``spare`` the replicas to be kept beyond what is needed."""

    goal: Goal
    slots: int
    spare: int = 0


def aim_of(annotations: Mapping[str, str], slots: int) -> Aim | None:
    """What a service with these ``annotations`` aims at; None where it says nothing. Raises ValueError for what makes no sense."""
    words = annotations.get(GOAL)
    if words is None:
        return None
    spare = annotations.get(SPARE, "0")
    if not spare.isdecimal():
        raise ValueError(f"{SPARE}: {spare!r} is no number of replicas")
    return Aim(Goal.of(words), max(1, slots), int(spare))


@dataclass(slots=True)
class Pursuit:
    """How a service keeps its goal: what it went through, and how long its replicas take to start. It outlives a restart."""

    watch: Watch = field(default_factory=Watch)
    starts: StartUps = field(default_factory=StartUps)

    def model(self, aim: Aim) -> Model:
        return Model(aim.slots, self.starts.start_ms)

    def hear(self, aim: Aim, came: Load, in_flight: Load, born: int, ready: int) -> None:
        """Take in what the request path said since the last time, while so many replicas served."""
        since = self.watch.heard or born
        end = min(came.heard, in_flight.heard) if came.runs else in_flight.heard
        there = in_flight.average(since, end)
        if end <= since or there is None:
            return
        rate = came.average(since, end) or (0, 1)
        length = end - since
        sample = Sample(end, length, rate[0] * length // (rate[1] * 1000), there[0] // there[1])
        self.watch.take(sample, aim.goal, self.model(aim), ready)

    def knows(self, now: int) -> bool:
        """Whether enough is known to decide by."""
        return bool(self.watch.heard) and now - self.watch.heard <= STALE_MS

    def plan(self, aim: Aim, fleet: Fleet, percent: int, now: int) -> Plan | None:
        """The replicas of a part of the service that gets so many percent of its requests; None while nothing is known."""
        if not self.knows(now):
            return None
        return plan(self.watch, aim.goal, self.model(aim), fleet, percent, aim.spare)

    def standing(self, aim: Aim, subject: str, now: int) -> tuple[str, str, str]:
        """Whether the goal decides, as status, reason and message of a condition. ``subject`` is what the samples are of."""
        if self.knows(now):
            return "True", "SizedByGoal", f"sized by {aim.goal}"
        wanted = f"samples {CAME} and {IN_FLIGHT} of {subject}"
        ways = "send requests through inference_gateway, which counts them, or hand in MetricReadings"
        if not self.watch.heard:
            return "Unknown", "NoSamples", f"{aim.goal}: no {wanted} came yet, and the size stays; {ways}"
        words = f"the {wanted} are older than {STALE_MS // 1000} s, and the size stays"
        return "Unknown", "SamplesStale", f"{aim.goal}: {words}; {ways}"

    def manifest(self) -> Manifest:
        """As it is written down."""
        return {"watch": self.watch.manifest(), "starts": self.starts.manifest()}

    @classmethod
    def of(cls, told: Manifest) -> "Pursuit":
        """As it was written down."""
        return cls(Watch.of(told["watch"]), StartUps({**told["starts"]}))
