"""The pictures of `day.py`: how much of the cluster is used without and with lending, and of what that is made up."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib

matplotlib.use("Agg")  # No display is needed.
from matplotlib import pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from tests.bench.colocation.day import Day

ONLINE, BATCH, LENT, ASKED = "#2a6f97", "#e09f3e", "#9a6a16", "#6c757d"
SIZE_INCHES, DOTS_PER_INCH = (9, 4.2), 100


def draw(before: "Day", after: "Day", folder: Path) -> list[Path]:
    """``colocation-use.png``: before and after; ``colocation-amounts.png``: what there is, is asked for, is used, and is lent."""
    folder.mkdir(parents=True, exist_ok=True)
    return [_use(before, after, folder / "colocation-use.png"), _amounts(after, folder / "colocation-amounts.png")]


def _use(before: "Day", after: "Day", file: Path) -> Path:
    figure, axes = pyplot.subplots(figsize=SIZE_INCHES)
    for day, color, label in ((before, ONLINE, "without lending"), (after, BATCH, "with lending")):
        mean = day.use_percent()
        axes.plot(
            _hours(day),
            [100 * use / day.total for use in day.used],
            color=color,
            label=f"{label}: {mean:.1f} % on average",
        )
        axes.axhline(mean, color=color, linestyle=":", linewidth=1)
    axes.set(ylabel="CPU in use (% of the cluster)", ylim=(0, 100), title=f"CPU in use, {after.nodes} nodes")
    return _save(figure, axes, after, file)


def _amounts(day: "Day", file: Path) -> Path:
    figure, axes = pyplot.subplots(figsize=SIZE_INCHES)
    online, batch = _cores(day.online), _cores(day.batch)
    axes.stackplot(
        _hours(day),
        online,
        batch,
        labels=["used by online services", "reclaimed: used by batch work"],
        colors=[ONLINE, BATCH],
        alpha=0.75,
        linewidth=0,
    )
    lent = [one + other for one, other in zip(online, _cores(day.lent), strict=True)]
    axes.plot(_hours(day), lent, color=LENT, linewidth=1, label="used by online services, and lent")
    axes.plot(_hours(day), _cores(day.requested), color=ASKED, linestyle="--", label="requested by online services")
    axes.axhline(day.total / 1000, color="black", linewidth=1.5, label="total")
    axes.set(ylabel="CPU (cores)", ylim=(0, day.total / 1000 * 1.05), title="What becomes of the CPU, with lending")
    return _save(figure, axes, day, file)


def _save(figure: "Figure", axes: "Axes", day: "Day", file: Path) -> Path:
    """With the hours below and the legend beneath them."""
    last = len(day.used) / 60
    axes.set(xlabel="hour of the day", xlim=(0, last))
    if last >= 12:
        axes.set_xticks(range(0, round(last) + 1, 3), [f"{hour}:00" for hour in range(0, round(last) + 1, 3)])
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, frameon=False)
    figure.savefig(file, dpi=DOTS_PER_INCH, bbox_inches="tight")
    pyplot.close(figure)
    return file


def _hours(day: "Day") -> list[float]:
    return [minute / 60 for minute in range(len(day.used))]


def _cores(milli: Sequence[int]) -> list[float]:
    return [one / 1000 for one in milli]
