"""What a service with a goal went through, as far as its sizes depend on it."""

from dataclasses import dataclass, field

from inference_autoscaler.domain.target.goal import Goal
from inference_autoscaler.domain.target.margin import scatter, score
from inference_autoscaler.domain.target.need import slots_needed
from inference_autoscaler.domain.target.offered import Offered
from inference_autoscaler.domain.target.seasons import Seasons
from inference_autoscaler.domain.target.spans import Scale, Span, level_of, variance_of
from kube import Manifest

WARM = 3
"""The first starts' time of a service teaches nothing: that it is used at all is no burst."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What was so for ``length`` up to ``end``: thousandths of requests that came, and of those in flight on average."""

    end: int
    length: int
    came_milli: int
    in_flight_milli: int


@dataclass(frozen=True, slots=True)
class Model:
    """What replicas are like: requests that one answers at a time, and how long one takes to start."""

    slots: int
    start_ms: int

    @property
    def scale(self) -> Scale:
        return Scale(self.start_ms)


@dataclass(slots=True)
class Watch:
    """It outlives a restart: no fact tells it."""

    offered: Offered = field(default_factory=Offered)
    spans: list[Span] = field(default_factory=list)
    seasons: Seasons = field(default_factory=Seasons)

    @property
    def heard(self) -> int:
        """Up to when anything is known."""
        return self.offered.buckets[-1].end if self.offered.buckets else 0

    def take(self, sample: Sample, goal: Goal, model: Model, ready: int) -> None:
        """Take in a sample, while so many replicas served."""
        before, step = self.heard, model.scale.span_ms
        self.offered.take(sample.end, sample.length, sample.came_milli, sample.in_flight_milli, ready * model.slots)
        self.offered.forget(max(sample.end - model.scale.window_ms, 1))
        if sample.end // step > before // step and before:
            self._close(sample.end, goal, model)

    def rewind(self, now: int) -> None:
        """The time was set back to ``now``: of what was later nobody knows when it was."""
        self.offered.buckets = [one for one in self.offered.buckets if one.end <= now]
        self.spans = [one for one in self.spans if one.end <= now]

    def held(self, scale: Scale) -> list[Span]:
        """The spans that still count."""
        return [one for one in self.spans if one.end > self.heard - scale.held_ms]

    def expected(self, scale: Scale) -> tuple[int, int]:
        """The load that counts now, and that of the last start's time alone, in thousandths."""
        level = level_of(self.offered.buckets)
        return max([level, *(one.level_milli for one in self.held(scale))]), level

    def wait_ms(self, goal: Goal) -> int:
        """How long a request may wait."""
        return goal.wait_ms(self.offered.service_us)

    def _close(self, end: int, goal: Goal, model: Model) -> None:
        """A span is over."""
        buckets, service = self.offered.buckets, self.offered.service_us
        level = level_of(buckets)
        need = slots_needed(buckets, service, self.wait_ms(goal), goal.late_permille)
        scored, scale = None, model.scale
        if len(self.spans) >= WARM * scale.parts:
            then = self.spans[-scale.parts]
            scored = score(need, then.expected_milli, then.scatter_milli, model.slots)
        expected, _ = self.expected(scale)
        spread = scatter(expected, self.spans)
        self.spans.append(Span(end, level, variance_of(buckets, level), need, expected, spread, scored))
        self.spans = [one for one in self.spans if one.end > end - scale.kept_ms]
        self.seasons.learn(end, level, model.start_ms)
        self.offered.fade()

    def manifest(self) -> Manifest:
        """As it is written down."""
        spans = [
            [one.end, one.level_milli, one.variance, one.need_milli, one.expected_milli, one.scatter_milli, one.score]
            for one in self.spans
        ]
        return {"offered": self.offered.manifest(), "spans": spans, "seasons": self.seasons.manifest()}

    @classmethod
    def of(cls, told: Manifest) -> "Watch":
        """As it was written down."""
        return cls(Offered.of(told["offered"]), [Span(*one) for one in told["spans"]], Seasons.of(told["seasons"]))
