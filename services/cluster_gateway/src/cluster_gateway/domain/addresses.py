"""Addresses of pods that run as processes of this machine: each has a loopback address of its own."""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain

from kube import Event

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
        for event in events:
            if event.key.kind != "Pod":
                continue
            if event.old is not None and (event.new is None or event.new.uid != event.old.uid):
                self._free(event.old.uid)
            address = _own_address(event.new.status.get("podIP")) if event.new is not None else None
            if event.new is not None and address is not None:
                self._take(event.new.uid, address)

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
