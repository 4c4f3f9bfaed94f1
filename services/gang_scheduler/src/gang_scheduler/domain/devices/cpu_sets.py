"""Which CPUs a pod that gets some of its own is given.

The plain rule, for whole cores: whole free cores of one NUMA node, the lowest numbers first; else of one processor; else of
the fewest NUMA nodes; what is left over of the request comes from cores of which a part is taken already. One thread of
each core: the same, but a NUMA node counts as large enough by its free CPUs, and of them the first threads come first.
Where the pod shuns others, the places of those are left out as long as there is enough without them.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gang_scheduler.domain.devices.cpu_binding import USUAL, Binding, BindPolicy
from gang_scheduler.domain.devices.numa import Allocation, NumaLayout


@dataclass(frozen=True, slots=True)
class CpuPool:
    """The CPUs of a node. ``room`` is how many of each NUMA node may still be given: shared pods take of it too."""

    layout: NumaLayout
    owned: Mapping[int, int]
    """The CPUs that belong to pods."""

    room: Sequence[int]
    shunned_cores: Collection[int] = ()
    shunned_cells: Collection[int] = ()
    """Places of NUMA nodes."""

    def choose(
        self, count: int, binding: Binding = USUAL, among: Sequence[int] | None = None
    ) -> tuple[int, ...] | None:
        """``count`` CPUs from the NUMA nodes at the places ``among`` (all), ascending; None when there are too few."""
        policy = self.layout.binding or binding.policy
        required = binding.required or self.layout.binding is not None
        if required and (self._conflict(binding) or (policy is BindPolicy.FULL and count % self.layout.threads)):
            return None
        places = range(len(self.room)) if among is None else among
        for shun in (True, False) if self.shunned_cores or self.shunned_cells else (False,):
            lists = {at: self._candidates(at, policy, required, shun) for at in places}
            chosen = self._from(lists, count, policy)
            if chosen is not None:
                return tuple(sorted(chosen))
        return None

    def left(self) -> int:
        """How many CPUs could be given at all."""
        free = (sum(cpu not in self.owned for cpu in cell.cpus) for cell in self.layout.cells)
        return sum(min(number, room) for number, room in zip(free, self.room, strict=True))

    def _conflict(self, binding: Binding) -> bool:
        return self.layout.binding is not None and binding.required and binding.policy is not self.layout.binding

    def _candidates(self, at: int, policy: BindPolicy, required: bool, shun: bool) -> list[int]:
        """The free CPUs of a NUMA node that are allowed at all."""
        if shun and at in self.shunned_cells:
            return []
        layout = self.layout
        free = [cpu for cpu in layout.cells[at].cpus if cpu not in self.owned]
        if shun:
            free = [cpu for cpu in free if layout.core(cpu) not in self.shunned_cores]
        if not required:
            return free
        if policy is BindPolicy.FULL:
            broken = self._broken()
            return [cpu for cpu in free if layout.core(cpu) not in broken]
        return [cpus[0] for cpus in cores_of(free, layout)]

    def _broken(self) -> set[int]:
        """The cores of which a part is not to be had."""
        return {self.layout.core(cpu) for cpu in self.owned} | self.layout.spoiled

    def _from(self, lists: Mapping[int, list[int]], count: int, policy: BindPolicy) -> list[int] | None:
        usable = {at: min(len(cpus), self.room[at]) for at, cpus in lists.items()}
        if sum(usable.values()) < count:
            return None
        broken = self._broken()
        large = usable
        if policy is BindPolicy.FULL:
            whole = {at: sum(self.layout.core(cpu) not in broken for cpu in cpus) for at, cpus in lists.items()}
            large = {at: min(number, usable[at]) for at, number in whole.items()}
        parts = next((p for group in self._groups(large) if (p := self._parts(group, large, count))), None)
        if parts is None:
            parts = self._parts(sorted(lists), large, count) or _topped_up(large, usable, count)
        pick = _whole_first if policy is BindPolicy.FULL else _spread
        return [cpu for at, part in parts.items() for cpu in pick(lists[at], part, self.layout, broken)]

    def _groups(self, large: Mapping[int, int]) -> Iterator[tuple[int, ...]]:
        """Single NUMA nodes, then processors, in the order in which they are tried."""
        sign = 1 if self.layout.allocation is Allocation.MOST else -1
        yield from ((at,) for at in sorted(large, key=lambda at: (sign * large[at], at)))
        sockets: dict[int, list[int]] = {}
        for at in sorted(large):
            sockets.setdefault(self.layout.cells[at].socket, []).append(at)
        sockets.pop(-1, None)
        if len(sockets) > 1:
            groups = (tuple(group) for group in sockets.values())
            yield from sorted(groups, key=lambda group: (sign * sum(large[at] for at in group), group))

    def _parts(self, places: Sequence[int], most: Mapping[int, int], count: int) -> dict[int, int]:
        """How many come from which NUMA node: from the fewest, the emptiest ones, or the same of each; {} if too few."""
        if sum(most[at] for at in places) < count:
            return {}
        order = sorted(places, key=lambda at: (-most[at], at))
        if self.layout.allocation is Allocation.EVENLY and (width := _even_width(order, most, count)):
            each, more = divmod(count, width)
            return {at: each + (place < more) for place, at in enumerate(order[:width])}
        parts: dict[int, int] = {}
        for at in order:
            parts[at] = min(most[at], count)
            count -= parts[at]
        return parts


def _topped_up(large: Mapping[int, int], usable: Mapping[int, int], count: int) -> dict[int, int]:
    """All that is ``large`` of every NUMA node, and as much as is missing of the rest."""
    parts, count = dict(large), count - sum(large.values())
    for at in sorted(usable, key=lambda at: (large[at] - usable[at], at)):
        more = min(usable[at] - large[at], count)
        parts[at], count = parts[at] + more, count - more
    return parts


def cores_of(cpus: Sequence[int], layout: NumaLayout) -> list[list[int]]:
    """The CPUs by core, the core with the lowest CPU first."""
    cores: dict[int, list[int]] = {}
    for cpu in sorted(cpus):
        cores.setdefault(layout.core(cpu), []).append(cpu)
    return list(cores.values())


def _whole_first(free: Sequence[int], count: int, layout: NumaLayout, broken: Collection[int]) -> list[int]:
    """Whole cores, then parts of those that are broken anyway, then parts of others."""
    cores = cores_of(free, layout)
    chosen: list[int] = []
    for cpus in cores:
        if layout.core(cpus[0]) not in broken and len(chosen) + len(cpus) <= count:
            chosen += cpus
    taken = set(chosen)
    rest = [cpu for cpus in cores if layout.core(cpus[0]) in broken for cpu in cpus]
    rest += [cpu for cpus in cores if layout.core(cpus[0]) not in broken for cpu in cpus if cpu not in taken]
    return chosen + rest[: count - len(chosen)]


def _spread(free: Sequence[int], count: int, layout: NumaLayout, broken: Collection[int]) -> list[int]:
    """The first free thread of each core, then the second ones; cores of which nobody has a part come first."""
    cores = cores_of(free, layout)
    rank = [(place + (layout.core(cpus[0]) in broken), n) for n, cpus in enumerate(cores) for place in range(len(cpus))]
    order = [cpu for cpus in cores for cpu in cpus]
    return [order[at] for at in sorted(range(len(order)), key=lambda at: (*rank[at], order[at]))[:count]]


def _even_width(order: Sequence[int], most: Mapping[int, int], count: int) -> int:
    """The fewest NUMA nodes that can each give the same part; 0 when none can."""
    widths = (width for width in range(1, len(order) + 1) if most[order[width - 1]] >= -(-count // width))
    return next(widths, 0)
