"""How many pods of a set go to which domain of a topology: Kueue's rules, on how many fit on each node.

Who gives quota and who binds pods ask the same here, so that they mean the same by a place.
At the level that is asked for the smallest domain that holds all is taken. Where none does, a set that only prefers one
goes a level up, and at the top over several domains: the largest first, and for the rest the smallest that holds it. Below,
the pods are laid on the domains of each level in the same way, so that they use few of them. A set without constraint takes
the nodes with the least room first.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from kube.pod_sets import Nearness, PodSetAsk
from kube.words import counted, verb
from topology.levels import Ints, Level, LevelTree


class Share(NamedTuple):
    """So many pods go to a domain of the narrowest level."""

    domain: int
    pods: int


class Shortfall(NamedTuple):
    """Why a set has no place: ``fits`` pods (or slices) at the most, in the domain ``where`` if it needs one."""

    level: str
    fits: int
    wanted: int
    where: str = ""
    unit: str = "pods"
    fault: str = ""
    """What is wrong with what is asked for, so that it can never have a place."""

    def sentence(self, who: str) -> str:
        """``no cloud.com/rack holds the 4 pods of j: b1-r2, the largest, has room for 3``."""
        if self.fault:
            return f"{who} cannot be laid out: {self.fault}"
        if self.where:
            return (
                f"no {self.level} holds the {self.wanted} {self.unit} of {who}: {self.where}, the one with most room, "
                f"has room for {self.fits}"
            )
        return (
            f"all domains of {self.level} together have room for {self.fits} of the {self.wanted} {self.unit} of {who}"
        )


def lay_out(tree: LevelTree, copies: Ints, ask: PodSetAsk, count: int) -> list[Share] | Shortfall:
    """The shares of ``count`` pods, in the order of the domains; ``copies`` says how many fit on each node."""
    lowest = len(tree.levels) - 1
    level = lowest if ask.nearness is Nearness.UNCONSTRAINED else tree.index(ask.level)
    sliced = tree.index(ask.slice_level) if ask.slice_level else lowest
    if level < 0 or sliced < 0:
        named = ask.level if level < 0 else ask.slice_level
        return Shortfall(named, 0, count, fault=f"the topology of its flavor has no level {named}")
    size = ask.slice_size if ask.slice_level else 1
    level = min(level, sliced)
    pods, slices = _tally(tree, copies, sliced, size)
    if count % size:
        return Shortfall(
            ask.slice_level,
            0,
            count,
            fault=f"its {counted(count, 'pod')} {verb(count, 'does', 'do')} not make whole slices of {size}",
        )
    least = ask.nearness is Nearness.UNCONSTRAINED and not ask.slice_level
    found = _choose(tree, pods, slices, ask, level, count // size, least)
    if isinstance(found, Shortfall):
        return found if size == 1 else found._replace(unit=f"slices of {size} pods")
    level, shares = found
    while level < sliced:
        level += 1
        parents = [domain for domain, _ in shares]
        below = np.flatnonzero(np.isin(tree.levels[level].parent, parents))
        shares = _take(_order(below, slices[level], pods[level], least), slices[level], count // size, least)
    shares = [(domain, slots * size) for domain, slots in shares]
    while level < lowest:
        level += 1
        shares = [
            share
            for parent, wanted in shares
            for share in _take(_below(tree, level, parent, pods[level], least), pods[level], wanted, least)
        ]
    return [Share(domain, wanted) for domain, wanted in sorted(shares)]


def shared_domains(tree: LevelTree, ask: PodSetAsk, sets: Sequence[tuple[Ints, int]]) -> Iterator[tuple[Level, int]]:
    """The domains that might hold all ``sets``, of each of which so many pods fit on each node and so many are wanted.

    The smallest of the narrowest level comes first; who only prefers one domain looks through the wider levels as well.
    """
    for place in range(tree.index(ask.level), -1, -1):
        level = tree.levels[place]
        sums = [level.sums(copies) for copies, _ in sets]
        enough = np.all([fits >= count for fits, (_, count) in zip(sums, sets, strict=True)], axis=0)
        total = np.sum(sums, axis=0)
        for domain in np.flatnonzero(enough)[np.argsort(total[enough], kind="stable")].tolist():
            yield level, domain
        if ask.nearness is Nearness.REQUIRED:
            return


def _tally(tree: LevelTree, copies: Ints, sliced: int, size: int) -> tuple[list[Ints], list[Ints]]:
    """For every level and domain how many pods fit, and how many slices; a slice lies inside one domain of ``sliced``."""
    pods = [level.sums(copies) for level in tree.levels]
    slices = [number // size if place == sliced else number for place, number in enumerate(pods)]
    for place in range(sliced - 1, -1, -1):
        parent = tree.levels[place + 1].parent
        slices[place] = np.bincount(parent, weights=slices[place + 1], minlength=len(pods[place])).astype(np.int64)
    return pods, slices


def _choose(
    tree: LevelTree, pods: list[Ints], slices: list[Ints], ask: PodSetAsk, level: int, count: int, least: bool
) -> tuple[int, list[tuple[int, int]]] | Shortfall:
    """The level, and its domains with their shares in slices."""
    while True:
        has = slices[level]
        order = _order(np.arange(len(has)), has, pods[level], least)
        enough = [domain for domain in order if has[domain] >= count]
        if enough:
            return level, [(enough[0] if least else _smallest(enough, has), count)]
        if ask.nearness is Nearness.REQUIRED:
            where = tree.levels[level].names[order[0]] if order else "none"
            return Shortfall(tree.levels[level].key, int(has.max(initial=0)), count, where)
        if ask.nearness is Nearness.UNCONSTRAINED or level == 0:
            break
        level -= 1
    total = int(has.sum())
    if total < count:
        return Shortfall(tree.levels[level].key, total, count)
    return level, _take(order, has, count, least)


def _order(domains: Ints, has: Ints, pods: Ints, least: bool) -> list[int]:
    """The domains from the largest to the smallest (the other way round for ``least``), equal ones by name."""
    sign = 1 if least else -1
    found: list[int] = domains[np.lexsort((domains, pods[domains], sign * has[domains]))].tolist()
    return found


def _below(tree: LevelTree, level: int, parent: int, pods: Ints, least: bool) -> list[int]:
    return _order(np.flatnonzero(tree.levels[level].parent == parent), pods, pods, least)


def _smallest(domains: Sequence[int], has: Ints) -> int:
    """The domain with the least of what it has, the first of equal ones."""
    return min(domains, key=lambda domain: int(has[domain]))


def _take(order: Sequence[int], has: Ints, wanted: int, least: bool) -> list[tuple[int, int]]:
    """Domain after domain until there is enough; what is left over goes to the smallest domain that holds it."""
    found: list[tuple[int, int]] = []
    for place, domain in enumerate(order):
        if has[domain] >= wanted:
            last = domain if least else _smallest([item for item in order[place:] if has[item] >= wanted], has)
            return [*found, (last, wanted)]
        if has[domain] > 0:
            found.append((domain, int(has[domain])))
            wanted -= int(has[domain])
    return found
