"""What a benchmark finds, and how it is shown."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure. ``reference`` is what it is held against, measured in the same run or stated with its source."""

    what: str
    measured: float
    unit: str
    goal: str = ""
    reached: bool | None = None
    reference: str = ""
    ratio: float | None = None
    repeatable: bool = False
    """Whether it is the same on every machine: then to miss the goal is an error."""


def failed(figures: Sequence[Figure]) -> bool:
    """Whether a goal was missed that does not hang on how fast and how quiet the machine is."""
    return any(figure.repeatable and figure.reached is False for figure in figures)


def at_most(what: str, measured: float, unit: str, goal: float, reference: str = "", against: float = 0) -> Figure:
    """A figure that should be small."""
    ratio = measured / against if against else None
    return Figure(what, measured, unit, f"≤ {goal:g}", measured <= goal, reference, ratio)


def at_least(what: str, measured: float, unit: str, goal: float, reference: str = "", against: float = 0) -> Figure:
    """A figure that should be large."""
    ratio = measured / against if against else None
    return Figure(what, measured, unit, f"≥ {goal:g}", measured >= goal, reference, ratio)


def median(values: Sequence[float]) -> float:
    """The middle one (the upper of two)."""
    return sorted(values)[len(values) // 2]


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that so many percent are not above."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def show(figures: Sequence[Figure]) -> None:
    """Print the table."""
    table = Table(title="Tidegate, measured on this machine")
    for column in ("what", "measured", "goal", "", "reference in the same run", "ratio"):
        table.add_column(column, justify="right" if column in ("measured", "goal", "ratio") else "left")
    for figure in figures:
        mark = {True: "reached", False: "missed", None: ""}[figure.reached]
        ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
        table.add_row(figure.what, f"{figure.measured:,.1f} {figure.unit}", figure.goal, mark, figure.reference, ratio)
    Console(width=150).print(table)
