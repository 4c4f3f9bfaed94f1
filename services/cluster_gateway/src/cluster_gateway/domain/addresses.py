"""Addresses of pods that run as processes of this machine: each has a loopback address of its own."""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain

from kube import Event, runs

FIRST = int(ipaddress.IPv4Address("127.64.0.1"))
LAST = int(ipaddress.IPv4Address("127.127.255.254"))


@dataclass(slots=True)
class Addresses:
    """Which addresses are taken. The next one follows the last that was given, so a freed one rests for long."""

    _by_uid: dict[str, int] = field(default_factory=dict)
    _taken: set[int] = field(default_factory=set)
    _last: int = FIRST - 1

    def fold(self, events: Iterable[Event]) -> None:
        """Learn of pods that have an address, and of pods that are gone."""
        for run in runs(events):
            old, new = run[0].old, run[0].new
            if run[0].key.kind != "Pod":
                continue
            if old is not None and (new is None or new.uid != old.uid):
                for event in run:
                    self._free(event.old.uid if event.old is not None else "")
            address = _own_address(new.status.get("podIP")) if new is not None else None
            if address is not None:
                for event in run:
                    self._take(event.object.uid, address)

    def give(self, uid: str) -> str:
        """The address of a pod, a new one if it has none yet."""
        if uid not in self._by_uid:
            self._take(uid, self._next())
        return str(ipaddress.IPv4Address(self._by_uid[uid]))

    def _next(self) -> int:
        for candidate in chain(range(self._last + 1, LAST + 1), range(FIRST, self._last + 1)):
            if candidate not in self._taken and candidate & 0xFF not in (0, 255):
                self._last = candidate
                return candidate
        raise RuntimeError(f"all {LAST - FIRST} loopback addresses for pods are taken")

    def _take(self, uid: str, address: int) -> None:
        if self._by_uid.get(uid) == address:
            return
        self._free(uid)
        self._by_uid[uid] = address
        self._taken.add(address)
        self._last = max(self._last, address)

    def _free(self, uid: str) -> None:
        address = self._by_uid.pop(uid, None)
        if address is not None:
            self._taken.discard(address)


def _own_address(text: object) -> int | None:
    """An address of the range that is given out here; None for any other."""
    if not isinstance(text, str) or not text.startswith("127."):
        return None
    try:
        address = int(ipaddress.IPv4Address(text))
    except ipaddress.AddressValueError:
        return None
    return address if FIRST <= address <= LAST else None
