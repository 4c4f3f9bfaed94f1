"""The distinct states of the cards of a node: how many percent of each are free, whichever card it is."""

from dataclasses import dataclass, field

import numpy as np

from gang_scheduler.domain.devices.devices import Devices
from gang_scheduler.domain.nodes.vectors import Ints
from gang_scheduler.domain.score.mixture import Floats
from gang_scheduler.domain.score.prices import Prices

Free = bytes
"""Free percent of every card, one byte each, the least first."""


@dataclass(slots=True)
class CardStates:
    """States have numbers. ``parts`` is kind by state: into how many parts for that kind the cards can be divided."""

    prices: Prices
    numbers: dict[Free, int] = field(default_factory=dict)
    free: list[Free] = field(default_factory=list)
    parts: Floats = field(init=False)
    parts_of: list[list[float]] = field(default_factory=list)
    _after: dict[tuple[int, int, int], int] = field(default_factory=dict)
    _served: Floats = field(default_factory=lambda: np.full((4, 64), np.nan))
    """Class by state; not a number where nobody has asked yet."""

    def __post_init__(self) -> None:
        self.parts = np.zeros((len(self.prices.per_copy), 64))

    def number(self, free: Free) -> int:
        """The number of a state."""
        number = self.numbers.get(free)
        if number is None:
            number = self.numbers[free] = len(self.free)
            self.free.append(free)
            if number >= self.parts.shape[1]:
                self.parts = np.hstack([self.parts, np.zeros_like(self.parts)])
            self.parts[:, number] = parts = self.prices.measures.parts[:, list(free)].sum(axis=1)
            self.parts_of.append(parts.tolist())
        return number

    def take_over(self, known: "CardStates") -> None:
        """The states that another one knows, with their numbers."""
        self.numbers, self.free, self._after = known.numbers, known.free, known._after
        most = max(map(len, self.free), default=0)
        percents = np.frombuffer(b"".join(free.rjust(most, b"\0") for free in self.free), np.uint8).reshape(-1, most)
        parts = self.prices.measures.parts[:, percents].sum(axis=2)
        self.parts = np.hstack([parts, np.zeros((len(parts), 64))])
        self.parts_of = parts.T.tolist()

    def served(self, number: int, node_class: int) -> float:
        """The cards' worth that cards in this state will still serve on a node of that class."""
        self._grow()
        served = float(self._served[node_class, number])
        if served != served:
            by_free = self.prices.fillings[node_class].served
            served = self._served[node_class, number] = sum(by_free[free] for free in self.free[number])
        return served

    def served_all(self, numbers: Ints, classes: Ints) -> Floats:
        """The same for many."""
        self._grow()
        missing = np.isnan(self._served[classes, numbers])
        if missing.any():
            for pair in {*zip(numbers[missing].tolist(), classes[missing].tolist(), strict=True)}:
                self.served(*pair)
        served: Floats = self._served[classes, numbers]
        return served

    def _grow(self) -> None:
        rows, columns = self._served.shape
        if len(self.prices.fillings) > rows or len(self.free) > columns:
            larger = np.full((max(rows, 2 * len(self.prices.fillings)), max(columns, 2 * len(self.free))), np.nan)
            larger[:rows, :columns] = self._served
            self._served = larger

    def after(self, number: int, count: int, percent: int) -> int:
        """The state when ``percent`` of ``count`` cards more are taken, each from the fullest that has them."""
        after = self._after.get((number, count, percent))
        if after is None:
            free = list(self.free[number])
            fitting = [at for at, has in enumerate(free) if has >= percent][:count]
            for at in fitting:
                free[at] -= percent
            after = self._after[number, count, percent] = self.number(bytes(sorted(free)))
        return after


def free_cards(devices: Devices, slots: Ints) -> list[Free]:
    """The state that the cards of each of ``slots`` are in now."""
    if len(slots) == 1:
        have, core = devices.have.memory[:, slots[0]].tolist(), devices.free.core[:, slots[0]].tolist()
        return [bytes(sorted(min(max(at, 0), 100) if has > 0 else 0 for has, at in zip(have, core, strict=True)))]
    free = np.where(devices.have.memory[:, slots] > 0, devices.free.core[:, slots], 0)
    rows = np.ascontiguousarray(np.sort(np.clip(free, 0, 100), axis=0).T.astype(np.uint8))
    found: list[Free] = rows.view(f"V{rows.shape[1]}").ravel().tolist()
    return found
