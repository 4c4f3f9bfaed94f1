"""The scores of other schedulers as drop-in scores of the scheduling core: BestFit and FGD, as the FGD paper has them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numba import njit
from tests.bench.openb import Job, Trace

from gang_scheduler.domain.columns.vectors import Ints, Mask
from gang_scheduler.domain.nodes.node_table import NodeTable
from gang_scheduler.domain.pods.pod_shape import PodShape
from gang_scheduler.domain.room.room import Room
from gang_scheduler.domain.score.appraisal import Appraisal
from gang_scheduler.domain.score.mixture import Ask, Census, Floats, ask_of

LARGEST_CPU, LARGEST_CARDS = 128_000, 800
TYPICAL = 0.95
"""FGD looks at the most common pods that together are so many of all."""


@dataclass(slots=True)
class Reference:
    """Stands where the core's own foresight stands. ``models`` are the card models of the nodes, by slot."""

    table: NodeTable
    trace: Trace
    models: Sequence[str]
    census: Census = field(default_factory=Census)
    version: int = 1
    appraisal: Appraisal | None = None

    def install(self, room: Room) -> None:
        """Score the nodes of ``room`` from now on."""
        room.foresight = room.views.foresight = self

    def renew(self) -> None:
        """Nothing is learned."""

    def keep_up(self) -> None:
        """Nothing is learned."""

    def remember(self) -> bytes:
        """Nothing was learned."""
        return b""

    def restore(self, data: Any) -> None:
        """Nothing was learned."""

    def scores(self, shape: PodShape, places: Ints) -> Ints:
        """More is better."""
        raise NotImplementedError

    def state(self, places: Ints) -> tuple[Ints, Ints]:
        """Free CPU of nodes in milli-cores, and of each card of theirs how many percent."""
        row, devices = self.table.resources.rows["cpu"], self.table.devices
        cpu = self.table.allocatable[row, places] - self.table.used[row, places]
        return cpu, np.where(devices.have.core[:, places] > 0, devices.free.core[:, places], 0)

    def placed(self, cpu: Ints, free: Ints, ask: Ask) -> tuple[Ints, Ints]:
        """The same with one more pod, on the cards that the core would give it: the fullest that have enough."""
        free = np.sort(free, axis=0)
        if ask.cards:
            fits = free >= ask.percent
            free = free - ask.percent * (fits & (fits.cumsum(axis=0) <= ask.cards))
        return cpu - ask.cpu, free


class BestFit(Reference):
    """The node with the least left of CPU and cards."""

    __slots__ = ()

    def scores(self, shape: PodShape, places: Ints) -> Ints:
        """Millionths, more is better."""
        cpu, free = self.placed(*self.state(places), ask_of(shape, 1))
        left = 0.5 * cpu / LARGEST_CPU + 0.5 * free.sum(axis=0) / LARGEST_CARDS
        scores: Ints = np.rint(1_000_000 * (2 - left)).astype(np.int64)
        return scores


@dataclass(slots=True)
class Fgd(Reference):
    """The node on which fragmentation grows least. It knows beforehand which pods the whole list has."""

    shares: Floats = field(init=False)
    needs: Ints = field(init=False)
    """CPU, cards, percent of each: of every typical pod."""

    admits: Mask = field(init=False)
    """Typical pod by node; false everywhere for pods without cards."""

    def __post_init__(self) -> None:
        counts = np.bincount(self.trace.kinds)
        order = np.argsort(-counts, kind="stable")
        typical = order[: int(np.searchsorted(np.cumsum(counts[order]), TYPICAL * counts.sum())) + 1]
        jobs = [self.trace.jobs[kind] for kind in typical]
        self.shares = counts[typical] / counts[typical].sum()
        self.needs = np.array([(job.cpu, job.cards, job.percent) for job in jobs], np.int64).T
        self.admits = np.array([[self._admits(job, model) for model in self.models] for job in jobs])

    def scores(self, shape: PodShape, places: Ints) -> Ints:
        """Of 100; the coarse steps are the original's, and it does worse without them."""
        state, known = self.state(places), (self.shares, self.needs, self.admits[:, places])
        grown = fragments(*self.placed(*state, ask_of(shape, 1)), *known) - fragments(*state, *known)
        scores: Ints = (100 / (1 + np.exp(grown / 100))).astype(np.int64)
        return scores

    @staticmethod
    def _admits(job: Job, model: str) -> bool:
        return job.cards > 0 and (not job.models or model in job.models)


def _fragments(cpu: Ints, free: Ints, shares: Floats, needs: Ints, admits: Mask) -> Floats:
    """For each node how much of its cards, in percent of one, a typical pod cannot use, in the mean over typical pods."""
    found = np.zeros(len(cpu))
    for node in range(len(cpu)):
        for pod in range(len(shares)):
            large = total = rest = 0
            for card in range(len(free)):
                total += free[card, node]
                if free[card, node] >= needs[2, pod]:
                    large += 1
                else:
                    rest += free[card, node]
            usable = admits[pod, node] and cpu[node] >= needs[0, pod] and large >= needs[1, pod]
            found[node] += shares[pod] * (rest if usable else total)
    return found


fragments = cast("Callable[[Ints, Ints, Floats, Ints, Mask], Floats]", njit(_fragments))

POLICIES: dict[str, Callable[[NodeTable, Trace, Sequence[str]], Reference]] = {"best-fit": BestFit, "fgd": Fgd}
