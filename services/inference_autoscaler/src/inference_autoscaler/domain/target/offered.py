"""The load that a service is offered: how many requests would be in progress if none had to wait.

What is in flight is that load as long as everything in flight has a slot. Where requests wait, they add up to more, and the longer they
wait the more; an autoscaler that takes these for load asks for far too much. There the load is what comes, times how long one takes.
"""

from dataclasses import dataclass, field

from kube import Manifest

_MEMORY = 32
"""After so many spans a time that a request took counts a third of what it counted."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """A short time up to ``end``: thousandths of requests that came, and that were offered on average. Times are milliseconds."""

    end: int
    length: int
    came_milli: int
    load_milli: int


@dataclass(slots=True)
class Offered:
    """``buckets`` are those of late, in order. How long one request takes is learned from what is in progress and what is done."""

    buckets: list[Bucket] = field(default_factory=list)
    busy: int = 0
    """Thousandths of requests in progress times microseconds."""
    done: int = 0
    """Thousandths of requests that were done meanwhile."""
    in_flight: int = 0
    """Thousandths of requests that were there last, waiting ones too."""

    @property
    def service_us(self) -> int:
        """How long a request takes once it is begun, in microseconds (Little's law); 0 where that is not known."""
        return self.busy // self.done if self.done > 0 and self.busy > 0 else 0

    def take(self, end: int, length: int, came_milli: int, in_flight_milli: int, slots: int) -> None:
        """Take in what was so for ``length`` up to ``end``, while there were so many ``slots``."""
        self.busy += min(in_flight_milli, slots * 1000) * length * 1000
        self.done += came_milli - (in_flight_milli - self.in_flight)
        self.in_flight = load = in_flight_milli
        if in_flight_milli > slots * 1000 and self.service_us:
            before = self.buckets[-1].load_milli if self.buckets else 0
            load = min(load, settled(before + came_milli, length, self.service_us))
        self.buckets.append(Bucket(end, length, came_milli, load))

    def fade(self) -> None:
        """What was learned long ago counts for less: once for each span."""
        self.busy, self.done = (amount * (_MEMORY - 1) // _MEMORY for amount in (self.busy, self.done))

    def forget(self, before: int) -> None:
        """Drop what no span reaches back to any more."""
        self.buckets = [one for one in self.buckets if one.end > before]

    def since(self, time: int) -> list[Bucket]:
        """Those that ended after ``time``."""
        return [one for one in self.buckets if one.end > time]

    def manifest(self) -> Manifest:
        """As it is written down."""
        buckets = [[one.end, one.length, one.came_milli, one.load_milli] for one in self.buckets]
        return {"buckets": buckets, "busy": self.busy, "done": self.done, "inFlight": self.in_flight}

    @classmethod
    def of(cls, told: Manifest) -> "Offered":
        """As it was written down."""
        return cls([Bucket(*one) for one in told["buckets"]], told["busy"], told["done"], told["inFlight"])


def settled(present: int, length: int, service_us: int) -> int:
    """What is left of ``present`` after ``length`` milliseconds in which each is answered after ``service_us`` on average."""
    return present * service_us // (service_us + length * 1000)
