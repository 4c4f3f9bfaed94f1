"""Choosing devices for claims on one node: a search in the order of requests, choices and devices, first found first taken."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gang_scheduler.domain.dra.capacity import told
from gang_scheduler.domain.dra.cel import holds
from gang_scheduler.domain.dra.cel_syntax import CelError
from gang_scheduler.domain.dra.requests import Ask, Constraint, Wanted
from gang_scheduler.domain.dra.slices import Device, DeviceId

MOST_STEPS = 20_000
"""After so many choices the search gives up, so that a hopeless claim costs no more."""

BLOCKING = ("NoSchedule", "NoExecute")


class Chosen(NamedTuple):
    """One device for one claim (by its place among the claims)."""

    claim: int
    ask: Ask
    device: Device


@dataclass(slots=True)
class Allocator:
    """One search. ``taken`` says whether somebody else has a device, ``left`` what is left of the counters of its pool."""

    devices: Sequence[Device]
    classes: Mapping[str, tuple[str, ...]]
    """The selectors of every device class."""

    taken: Callable[[DeviceId], bool]
    left: Mapping[tuple[str, str, str], int]
    sharers: Mapping[DeviceId, int] = field(default_factory=dict)
    drawn: Mapping[tuple[DeviceId, str], int] = field(default_factory=dict)
    """Of which devices parts are given away, and how much of which capacity."""

    why: str = ""
    """What the search could not get past, in words, once it has failed."""

    _chosen: list[Chosen] = field(default_factory=list)
    _mine: dict[DeviceId, int] = field(default_factory=dict)
    _drawn: dict[tuple[DeviceId, str], int] = field(default_factory=dict)
    _consumed: dict[tuple[str, str, str], int] = field(default_factory=dict)
    _agreed: dict[tuple[int, Constraint], list[Any]] = field(default_factory=dict)
    _steps: int = 0
    _furthest: int = -1

    def allocate(self, claims: Sequence[Wanted]) -> list[Chosen] | None:
        """Devices for all claims together; None when there are none."""
        flat = [(at, request) for at, claim in enumerate(claims) for request in claim.requests]

        def request(number: int) -> bool:
            if number == len(flat):
                return True
            at, one = flat[number]
            tried = (self._meet(at, claims[at].constraints, ask, lambda: request(number + 1)) for ask in one.choices)
            if any(tried):
                return True
            if number > self._furthest:
                self._furthest = number
                self.why = self.why or self._lack(one.choices)
            return False

        return list(self._chosen) if request(0) else None

    def _meet(self, claim: int, constraints: Sequence[Constraint], ask: Ask, then: Callable[[], bool]) -> bool:
        fitting = list(self._fitting(ask))
        if not ask.count and (not fitting or not all(self._free(ask, one) for one in fitting)):
            return False
        bound = [one for one in constraints if one.concerns(ask)]
        count = ask.count or len(fitting)
        # Of a device that is shared a request may have several parts.
        several = ask.count > 1 and any(one.shareable for one in fitting)

        def device(missing: int, start: int) -> bool:
            if not missing:
                return then()
            for place in range(start, len(fitting) if several else len(fitting) - missing + 1):
                self._steps += 1
                if self._steps > MOST_STEPS:
                    self.why = f"no choice of devices was found among {MOST_STEPS} tried"
                    return False
                if not self._take(claim, ask, fitting[place], bound):
                    continue
                if device(missing - 1, place if several and fitting[place].shareable else place + 1):
                    return True
                self._give_back(claim, ask, fitting[place], bound)
            return False

        return device(count, 0)

    def _fitting(self, ask: Ask) -> Iterator[Device]:
        """The devices that match, taken or not (under ``All`` it matters)."""
        selectors = self.classes.get(ask.device_class)
        for one in self.devices if selectors is not None else ():
            try:
                matches = all(holds(text, {"device": one.scope}) for text in (*(selectors or ()), *ask.selectors))
            except CelError as error:
                self.why = f"a selector of request {ask.name} cannot be evaluated for device {one.id.name}: {error}"
                continue
            if matches and (ask.admin or one.taken_by(ask.capacity) is not None):
                yield one

    def _free(self, ask: Ask, one: Device) -> bool:
        if ask.admin:
            return True
        blocking = (taint for taint in one.taints if taint.effect in BLOCKING)
        if any(not any(item.covers(taint) for item in ask.tolerations) for taint in blocking):
            return False
        if self.taken(one.id):
            return False
        if one.shareable:
            taken = one.taken_by(ask.capacity) or {}
            if any(amount > self._remains(one, name) for name, amount in taken.items()):
                return False
            if self.sharers.get(one.id) or self._mine.get(one.id):
                return True
        elif self._mine.get(one.id):
            return False
        return all(self._left(one, name) >= amount for name, amount in one.consumes)

    def _remains(self, one: Device, name: str) -> int:
        """What is left of a capacity of a device that is shared."""
        key = one.id, name
        return one.capacities[name].amount - self.drawn.get(key, 0) - self._drawn.get(key, 0)

    def _left(self, one: Device, name: str) -> int:
        key = (one.id.driver, one.id.pool, name)
        return self.left.get(key, 0) - self._consumed.get(key, 0)

    def _take(self, claim: int, ask: Ask, one: Device, bound: Sequence[Constraint]) -> bool:
        if not self._free(ask, one):
            return False
        for item in bound:
            value = one.values.get(item.attribute)
            agreed = self._agreed.get((claim, item), [])
            if value is None or (agreed and (value in agreed if item.distinct else value != agreed[0])):
                return False
        for item in bound:
            self._agreed.setdefault((claim, item), []).append(one.values[item.attribute])
        self._chosen.append(Chosen(claim, ask, one))
        self._count(ask, one, 1)
        return True

    def _give_back(self, claim: int, ask: Ask, one: Device, bound: Sequence[Constraint]) -> None:
        for item in bound:
            self._agreed[claim, item].pop()
        self._chosen.pop()
        self._count(ask, one, -1)

    def _count(self, ask: Ask, one: Device, sign: int) -> None:
        if ask.admin:
            return
        before = self._mine.get(one.id, 0)
        self._mine[one.id] = before + sign
        if one.shareable:
            for name, amount in (one.taken_by(ask.capacity) or {}).items():
                self._drawn[one.id, name] = self._drawn.get((one.id, name), 0) + sign * amount
            if self.sharers.get(one.id) or max(before, before + sign) > 1:
                return
        for name, amount in one.consumes:
            key = (one.id.driver, one.id.pool, name)
            self._consumed[key] = self._consumed.get(key, 0) + sign * amount

    def _lack(self, choices: Sequence[Ask]) -> str:
        parts = []
        for ask in choices:
            if ask.device_class not in self.classes:
                parts.append(f"request {ask.name} names the device class {ask.device_class}, which does not exist")
                continue
            fitting = list(self._fitting(ask))
            free = sum(self._free(ask, one) for one in fitting)
            count = ask.count or "all"
            with_ = " and ".join(f"{name} {told(amount)}" for name, amount in ask.capacity)
            parts.append(
                f"request {ask.name} needs {count} of class {ask.device_class}{f' with {with_}' if with_ else ''}: "
                f"{len(fitting)} match, {free} of them are free{self._most_left(fitting) if not free else ''}"
            )
        return "; ".join(parts)

    def _most_left(self, fitting: Sequence[Device]) -> str:
        """What is left of the device that is shared and has most left, in words."""
        shared = [one for one in fitting if one.shareable and one.capacities]
        if not shared:
            return ""
        best = max(shared, key=lambda one: [self._remains(one, name) for name in sorted(one.capacities)])
        left = [f"{best.capacities[name].name} {told(self._remains(best, name))}" for name in sorted(best.capacities)]
        return f" ({best.id.name} has {', '.join(left)} left)"
