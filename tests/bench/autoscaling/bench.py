"""`python -m tests.bench autoscaling`: HPA, Knative, KEDA and Tidegate on the same requests, and what each costs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tests.bench.autoscaling.loads import MADE_UP, poisson
from tests.bench.autoscaling.own import ByGoal
from tests.bench.autoscaling.queue_model import Requests, Seen
from tests.bench.autoscaling.replay import Autoscaler, Fleet, Outcome, replay
from tests.bench.autoscaling.rivals import Foreseen, Horizontal70, Keda, Knative
from tests.bench.autoscaling.serving_pictures import Point, ServingRun, draw_curves, draw_run
from tests.bench.autoscaling.traces import CODE, CONV, folder, read, superposed
from tests.bench.figures import Figure

from inference_autoscaler.domain.target.goal import Goal

SEEDS, STARTS, GOAL_START = range(5), (30, 60, 120), 60
GOALS = {CODE: (2.0, 17.0), CONV: (0.05, 35.0)}
"""Percent late and replica-hours that are to be reached where a replica starts in 60 seconds."""

SERVICE_SECONDS, SERVICE_SLOTS, SERVICE_START, SERVICE_THRESHOLD = 0.012, 8, 30, 80.0
"""A replica has 8 instances of a model that answers in 12 ms, some 670 requests a second, and starts in 30 s."""
SERVICE_TIME, SERVICE_RAMP = 4500, 450
"""How long the load goes on, and until when its first ramp is over, in seconds."""

RIVALS: dict[str, Callable[[Requests, int], Autoscaler]] = {
    "HPA": lambda requests, start: Horizontal70(),
    "Knative": lambda requests, start: Knative(),
    "KEDA": lambda requests, start: Keda(),
    "Tidegate": lambda requests, start: ByGoal(start),
    "foreseen": Foreseen,
}


@dataclass(frozen=True, slots=True)
class Fixed:
    """So many replicas, always."""

    replicas: int

    def look(self, seen: Seen, fleet: Fleet) -> int:
        return self.replicas


async def autoscaling(pictures: Path | None = None) -> list[Figure]:
    """All of it. Everything is in virtual time, and comes out the same on every machine."""
    data, found = folder(), list[Figure]()
    traces = {name: [superposed(read(data, name), seed) for seed in SEEDS] for name in (CODE, CONV)}
    for name, seeds in traces.items():
        for start in STARTS:
            found += _compared(
                f"{name}, {start} s to start", seeds, start, GOALS[name] if start == GOAL_START else None
            )
    for name, made in MADE_UP.items():
        found += _compared(f"{name}, {GOAL_START} s to start", [made(seed) for seed in SEEDS[:2]], GOAL_START, None)
    curves = {name: _curves(seeds[0]) for name, seeds in traces.items()}
    found += _thousands(pictures)
    if pictures is not None:
        draw_curves(curves, f"replicas that start in {GOAL_START} s", pictures / "autoscaling-curve.png")
    return found


def _compared(what: str, seeds: Sequence[Requests], start: int, goal: tuple[float, float] | None) -> list[Figure]:
    """Mean and spread over the seeds of what each comes to; Tidegate's is the figure, the others' its reference."""
    outcomes = {name: [replay(one, made(one, start), start) for one in seeds] for name, made in RIVALS.items()}
    late = {name: np.array([one.late_percent for one in listed]) for name, listed in outcomes.items()}
    hours = {name: np.array([one.replica_hours for one in listed]) for name, listed in outcomes.items()}
    others = [name for name in RIVALS if name != "Tidegate"]

    def told(values: Mapping[str, np.ndarray]) -> str:  # type: ignore[type-arg]
        return ", ".join(f"{name} {values[name].mean():.1f}" for name in others)

    def figure(part: str, unit: str, values: Mapping[str, np.ndarray], most: float | None) -> Figure:  # type: ignore[type-arg]
        own, against = values["Tidegate"], float(values["HPA"].mean())
        mean, ratio = float(own.mean()), float(own.mean()) / against if against else None
        spread = f"{what}: {part} (± {own.std():.2f})"
        if most is None:
            return Figure(spread, mean, unit, "", None, told(values), ratio)
        return Figure(spread, mean, unit, f"≤ {most:g}", mean <= most, told(values), ratio, repeatable=True)

    return [
        figure("late", "%", late, goal and goal[0]),
        figure("replica-hours", "h", hours, goal and goal[1]),
    ]


def _curves(requests: Requests) -> dict[str, list[Point]]:
    """What each comes to with other settings of it."""
    goals = (
        "p90 queue wait <= 1s",
        "p95 queue wait <= 1s",
        "queue wait <= 2s",
        "queue wait <= 1s",
        "queue wait <= 250ms",
    )
    tried: dict[str, list[Autoscaler]] = {
        "HPA": [Horizontal70(percent) for percent in (30, 50, 70, 90)],
        "Knative": [Knative(percent=percent) for percent in (30, 50, 70, 90)],
        "Tidegate": [
            *(ByGoal(GOAL_START, Goal.of(goal)) for goal in goals),
            *(ByGoal(GOAL_START, spare=spare) for spare in (2, 4, 6)),
        ],
        "fixed": [Fixed(replicas) for replicas in (10, 14, 18, 22, 26, 30, 32, 34, 36)],
        "foreseen": [Foreseen(requests, GOAL_START)],
    }
    return {
        name: [_point(replay(requests, one, GOAL_START, _first(one))) for one in listed]
        for name, listed in tried.items()
    }


def _first(one: Autoscaler) -> int:
    return one.replicas if isinstance(one, Fixed) else 1


def _point(outcome: Outcome) -> Point:
    return Point(outcome.replica_hours, outcome.late_percent)


def _thousands(pictures: Path | None) -> list[Figure]:
    """Thousands of requests a second, over a day and in spikes: from one replica to ten and back."""
    found = list[Figure]()
    for name, rate in (("over a day", _day()), ("in spikes", _spikes())):
        requests = poisson(rate, seed=1, serve=SERVICE_SECONDS)
        scaler = ByGoal(SERVICE_START, Goal.of("p95 latency <= 300ms"), SERVICE_SLOTS)
        run = replay(requests, scaler, SERVICE_START, slots=SERVICE_SLOTS)
        latency = float(np.percentile((run.wait + requests.serve)[requests.arrive > SERVICE_RAMP], 95)) * 1000
        what = f"thousands of requests {name}"
        found += [
            Figure(f"{what}, at most", float(rate.max()), "/s"),
            Figure(
                f"{what}, p95 latency after the first ramp", latency, "ms", "≤ 300", latency <= 300, repeatable=True
            ),
            Figure(f"{what}, replicas at most", max(run.wanted), "", reference=f"{min(run.wanted)} at least"),
            Figure(f"{what}, replicas at the end", run.wanted[-1], ""),
        ]
        if pictures is not None:
            draw_run(
                as_run(run), f"thousands of requests a second {name}", pictures / f"autoscaling-{name.split()[-1]}.png"
            )
    return found


def as_run(run: Outcome) -> ServingRun:
    """What a replay says, for its picture: the mean of each ten seconds."""
    seconds = range(0, len(run.arrived) - len(run.arrived) % 10, 10)

    def mean(values: Sequence[float]) -> list[float]:
        return [sum(values[at : at + 10]) / 10 for at in seconds]

    busy = [100 * slots / max(1, ready * SERVICE_SLOTS) for slots, ready in zip(run.busy, run.ready, strict=True)]
    wanted, ready = run.wanted[::10][: len(seconds)], run.ready[::10][: len(seconds)]
    return ServingRun([*seconds], mean(run.arrived), mean(busy), wanted, ready, SERVICE_THRESHOLD)


def _day() -> np.ndarray:  # type: ignore[type-arg]
    """A day in half an hour, and the night after it."""
    time = np.arange(SERVICE_TIME)
    return 200.0 + 2300.0 * (1 - np.cos(2 * np.pi * time / 2000)) * (time < 2000)


def _spikes() -> np.ndarray:  # type: ignore[type-arg]
    """Little, and every few minutes four thousand more for a while, up and down within a minute."""
    time = np.arange(SERVICE_TIME)
    ramp = sum(np.clip(np.minimum(time - begin, begin + 180 - time) / 60, 0, 1) for begin in (300, 800, 1300))
    return 200.0 + 4000.0 * np.asarray(ramp)
