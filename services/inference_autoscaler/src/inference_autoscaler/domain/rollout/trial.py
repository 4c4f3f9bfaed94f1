"""A revision on trial: which step it is at, what is known of it, and what becomes of it."""

from dataclasses import asdict, dataclass

from inference_autoscaler.domain.rollout.comparison import shown, worse
from inference_autoscaler.domain.rollout.exact_test import Share
from inference_autoscaler.domain.rollout.plan import Plan
from inference_autoscaler.domain.rollout.tally import Counts, since
from kube import Manifest

GOING, PROMOTED, BACK = "going", "promoted", "back"
_FEW = "it waits until each of the two has answered {} requests"


@dataclass(frozen=True, slots=True)
class Sight:
    """What is seen of the revision on trial: pods that serve, whether one of its pods has a node, and what both answered."""

    serving: int
    runs: bool
    newer: Counts
    older: Counts


@dataclass(slots=True)
class Trial:
    """It outlives a restart. Times are milliseconds.

    ``base`` is how many pods the stable revision had for all requests. ``aim`` is the step that it is sized for, ``step`` the
    one in force (-1: none yet), ``since`` when that began. ``tested`` is how many of its requests in this step were looked at.
    ``first`` and ``marks`` are what was counted when the trial and the step began, of the newer and of the older.
    """

    revision: str
    stable: str
    plan: str
    base: int
    first: Counts
    marks: tuple[Counts, Counts]
    state: str = GOING
    aim: int = 0
    step: int = -1
    since: int = 0
    looks: int = 0
    tested: int = 0
    idle_since: int | None = None
    reason: str = "Starting"
    words: str = "it has no pod that serves yet"

    def rewind(self, now: int) -> None:
        """The time was set back to ``now``: nothing was later."""
        self.since = min(self.since, now)
        self.idle_since = None if self.idle_since is None else min(self.idle_since, now)

    def percent(self, plan: Plan) -> int:
        """Its share of the requests."""
        if self.state == PROMOTED:
            return 100
        return plan.steps[self.step].percent if self.state == GOING and self.step >= 0 else 0

    def aimed(self, plan: Plan) -> int:
        """The share that it is sized for."""
        return plan.steps[self.aim].percent if self.state == GOING else self.percent(plan)

    def pods(self, plan: Plan) -> int:
        """How many pods it has to have for that: as large a part of what the stable one had."""
        return max(1, -(-self.base * self.aimed(plan) // 100)) if self.state == GOING else 0

    def stable_pods(self, plan: Plan) -> int:
        """How many the stable one keeps: enough for what it had to bear a step before."""
        if self.state != GOING:
            return 0
        before = plan.steps[self.step - 1].percent if self.step > 0 else 0
        return -(-self.base * (100 - before) // 100)

    def is_awake(self, plan: Plan, now: int) -> bool:
        """Whether time alone may change something."""
        if self.state != GOING or self.step != self.aim or self.idle_since is not None:
            return self.state == GOING
        return plan.steps[self.step].time_ms is not None and not self._is_over(plan, now)

    def _is_over(self, plan: Plan, now: int) -> bool:
        time = plan.steps[self.step].time_ms
        return time is not None and now - self.since >= time

    def look(self, plan: Plan, sight: Sight, now: int) -> None:
        """What becomes of it at ``now``."""
        if self.state != GOING or self._is_lost(plan, sight, now):
            return
        if self.step >= 0:
            self._compare(plan, sight, now)
        if self.state == GOING:
            self._go_on(plan, sight, now)

    def _is_lost(self, plan: Plan, sight: Sight, now: int) -> bool:
        """Whether none of its pods serves for too long, though one runs: a pod that finds no room is no failure of it."""
        if sight.serving or not sight.runs:
            self.idle_since = None
            return False
        if self.idle_since is None:
            self.idle_since = now
        time = plan.ready_ms if self.step < 0 else plan.lost_ms
        if now - self.idle_since < time:
            return False
        reason = "NeverReady" if self.step < 0 else "RevisionCrashed"
        self._end(BACK, reason, f"its pods run, and for {time // 1000} s none serves")
        return True

    def _compare(self, plan: Plan, sight: Sight, now: int) -> None:
        """A look when a quarter more requests came than at the last one, and at the end of a step; never on too few."""
        if plan.requests == 0:
            return
        newer, older = since(sight.newer, self.marks[0]), self._older(plan, sight)
        count, ends = newer.get("requests", 0), self.aim == self.step and self._is_over(plan, now)
        is_due = count >= max(plan.requests, -(-self.tested * 5 // 4)) or (ends and count > self.tested > 0)
        if not is_due or older is None:
            self.words = _FEW.format(plan.requests) if ends and not self.tested else self.words
            return
        self.looks, self.tested = self.looks + 1, count
        found = worse(newer, older, plan, self.looks)
        if found is not None:
            self._end(BACK, found.reason, found.words)
            return
        errors = (shown(Share(one.get("errors", 0), one["requests"])) for one in (newer, older))
        self.words = f"errors {' against '.join(errors)}, nothing speaks against it at look {self.looks}"

    def _older(self, plan: Plan, sight: Sight) -> Counts | None:
        """What the stable one answered in the same time, or where that is too little since the trial began; None if that is too."""
        samples = (since(sight.older, then) for then in (self.marks[1], self.first))
        return next((one for one in samples if one.get("requests", 0) >= plan.requests), None)

    def _go_on(self, plan: Plan, sight: Sight, now: int) -> None:
        """The next step when this one has taken its time and was looked at, and enough pods serve."""
        if self.aim == self.step:
            if not self._is_over(plan, now) or (plan.requests and not self.tested):
                return
            if self.step + 1 == len(plan.steps):
                self._end(PROMOTED, "Promoted", self.words)
                return
            self.aim += 1
        if sight.serving >= self.pods(plan):
            self.step, self.since, self.tested = self.aim, now, 0
            self.marks = {**sight.newer}, {**sight.older}
            self.reason, self.words = "StepTaken", f"step {self.step + 1} of {len(plan.steps)}"

    def _end(self, state: str, reason: str, words: str) -> None:
        self.state, self.reason, self.words = state, reason, words

    def manifest(self) -> Manifest:
        """As it is written down."""
        return {**asdict(self), "marks": [*map(dict, self.marks)]}

    @classmethod
    def of(cls, told: Manifest) -> "Trial":
        """As it was written down."""
        return cls(**{**told, "marks": tuple(told["marks"])})
