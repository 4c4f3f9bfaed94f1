"""Pictures of a service under load: what came, how busy its replicas were, how many there were. For runs in virtual time and real ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # No display is needed.
from matplotlib import pyplot

COLORS = {
    "HPA": "#2a6f97",
    "Knative": "#6a4c93",
    "KEDA": "#8ac926",
    "Tidegate": "#e09f3e",
    "fixed": "#6c757d",
    "foreseen": "black",
}
LOAD, BUSY, REPLICAS, THRESHOLD = "#2a6f97", "#e09f3e", "#9a6a16", "#bc4749"
DOTS_PER_INCH = 100
ABOVE: Any = {"loc": "lower right", "bbox_to_anchor": (1, 0.97), "ncols": 2, "frameon": False}
"""A legend that hides nothing."""


@dataclass(frozen=True, slots=True)
class ServingRun:
    """One value a time each: seconds since the beginning, requests a second, busy time of the replicas' slots in percent, replicas.

    ``threshold`` is the percentage above which a replica has more to do than it is meant to.
    """

    seconds: Sequence[float]
    load: Sequence[float]
    busy_percent: Sequence[float]
    wanted: Sequence[int]
    ready: Sequence[int]
    threshold: float


@dataclass(frozen=True, slots=True)
class Point:
    """One setting of an autoscaler: what it costs, and how many requests are late."""

    replica_hours: float
    late_percent: float


def draw_run(run: ServingRun, title: str, file: Path) -> Path:
    """Load, use and replicas over time, one below the other."""
    figure, (load, busy, replicas) = pyplot.subplots(3, 1, figsize=(9, 7), sharex=True)
    minutes = [second / 60 for second in run.seconds]
    load.plot(minutes, run.load, color=LOAD, linewidth=1)
    load.set(ylabel="requests a second", ylim=(0, None), title=title)
    busy.plot(minutes, run.busy_percent, color=BUSY, linewidth=1)
    busy.axhline(run.threshold, color=THRESHOLD, linestyle="--", linewidth=1, label=f"threshold, {run.threshold:g} %")
    busy.set(ylabel="busy slots (%)", ylim=(0, 105))
    busy.legend(**ABOVE)
    replicas.step(minutes, run.wanted, where="post", color=REPLICAS, linestyle=":", label="wanted")
    replicas.step(minutes, run.ready, where="post", color=REPLICAS, label="ready")
    replicas.set(ylabel="replicas", ylim=(0, None), xlabel="minutes")
    replicas.legend(**ABOVE)
    for axes in (load, busy, replicas):
        axes.grid(alpha=0.3)
    return _save(figure, file)


def draw_curves(curves: Mapping[str, Mapping[str, Sequence[Point]]], title: str, file: Path) -> Path:
    """For each trace, the late requests of each autoscaler against its cost, one point for each setting."""
    figure, panels = pyplot.subplots(1, len(curves), figsize=(9, 4.2), squeeze=False)
    for axes, (trace, named) in zip(panels[0], curves.items(), strict=True):
        for name, points in named.items():
            ordered = sorted(points, key=lambda one: one.replica_hours)
            hours, late = [one.replica_hours for one in ordered], [one.late_percent for one in ordered]
            axes.plot(hours, late, color=COLORS[name], marker="o", markersize=4, linewidth=1, label=name)
        axes.set(xlabel="replica-hours", ylabel="late requests (%)", title=trace, xlim=(0, 70), ylim=(-0.5, 20))
        axes.grid(alpha=0.3)
    panels[0][0].legend(frameon=False)
    figure.suptitle(title)
    return _save(figure, file)


def _save(figure: "pyplot.Figure", file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(file, dpi=DOTS_PER_INCH)
    pyplot.close(figure)
    return file
