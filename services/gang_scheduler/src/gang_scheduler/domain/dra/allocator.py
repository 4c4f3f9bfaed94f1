"""Choosing devices for claims on one node: a search in the order of requests, choices and devices, first found first taken."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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
    why: str = ""
    """What the search could not get past, in words, once it has failed."""

    _chosen: list[Chosen] = field(default_factory=list)
    _mine: set[DeviceId] = field(default_factory=set)
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

        def device(missing: int, start: int) -> bool:
            if not missing:
                return then()
            for place in range(start, len(fitting) - missing + 1):
                self._steps += 1
                if self._steps > MOST_STEPS:
                    self.why = f"no choice of devices was found among {MOST_STEPS} tried"
                    return False
                if not self._take(claim, ask, fitting[place], bound):
                    continue
                if device(missing - 1, place + 1):
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
            if matches:
                yield one

    def _free(self, ask: Ask, one: Device) -> bool:
        if ask.admin:
            return True
        blocking = (taint for taint in one.taints if taint.effect in BLOCKING)
        if any(not any(item.covers(taint) for item in ask.tolerations) for taint in blocking):
            return False
        if one.id in self._mine or self.taken(one.id):
            return False
        return all(self._left(one, name) >= amount for name, amount in one.consumes)

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
        (self._mine.add if sign > 0 else self._mine.discard)(one.id)
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
            parts.append(
                f"request {ask.name} needs {count} of class {ask.device_class}: {len(fitting)} match, {free} of them are free"
            )
        return "; ".join(parts)
