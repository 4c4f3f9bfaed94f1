"""Open-loop load: requests leave at times that do not depend on answers, and an answer's time is the kernel's.

Arrivals are Poisson, the same for every run of one seed. A request's latency is counted from the moment at which it was sent to
the moment at which its answer reached this process's socket (SO_TIMESTAMPNS), so what the load's own process waits for does
not count. Who asks would be other machines: as root the load goes before all else that is ready to run here (SCHED_FIFO). It is
one thread, which takes the answers that are there whenever it sends: one that woke for each of them would take the CPU from the
service as often, and keep the sender waiting for the interpreter's lock.
"""

import os
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SO_TIMESTAMPNS = 35
SO_RCVBUFFORCE = 33
NEVER = np.iinfo(np.int64).max
CALIBRATION = 400
LAST_ANSWERS = 1.0
"""Seconds after the last request: what is not answered by then is lost."""


@dataclass(frozen=True, slots=True)
class Part:
    """``seconds`` at ``load``: the part of all CPUs that the service needs."""

    seconds: float
    load: float


@dataclass(frozen=True, slots=True)
class Answers:
    """For each request, in order: when it was sent, seconds from the start, and its latency in ns (NEVER if it was lost)."""

    sent: NDArray[np.float64]
    latency: NDArray[np.int64]

    def percentile_ms(self, percent: float, since: float = 0.0, until: float = 1e9) -> float:
        """The latency that so many percent of the requests of a stretch stay within, in milliseconds."""
        chosen = self.latency[(self.sent >= since) & (self.sent < until)]
        place = min(len(chosen) - 1, int(np.ceil(len(chosen) * percent / 100)) - 1)
        return float(np.sort(chosen)[place]) / 1e6

    def by_second(self, percent: float) -> list[float]:
        """The same for each second of the run."""
        return [self.percentile_ms(percent, second, second + 1) for second in range(int(self.sent[-1]))]


class Load:
    """What asks the service at ``ports``."""

    def __init__(self, ports: list[int], processors: int) -> None:
        self._ports, self._processors = ports, processors
        self.service_seconds = 0.0

    def calibrate(self) -> float:
        """How long one request takes when nothing else runs; loads are reckoned from it."""
        with _socket() as door:
            door.settimeout(5.0)
            took = []
            for number in range(CALIBRATION):
                began = time.perf_counter()
                door.sendto(struct.pack("I", number), ("127.0.0.1", self._ports[number % len(self._ports)]))
                door.recv(64)
                took.append(time.perf_counter() - began)
        self.service_seconds = float(np.median(took))
        return self.service_seconds

    def wait_for_the_service(self, seconds: float = 60.0) -> None:
        """Until every port answers. Raises TimeoutError."""
        ends = time.monotonic() + seconds
        for port in self._ports:
            while time.monotonic() < ends:
                with _socket() as door:
                    door.settimeout(0.2)
                    try:
                        door.sendto(b"....", ("127.0.0.1", port))
                        door.recv(64)
                        break
                    except (TimeoutError, ConnectionError):
                        continue
            else:
                raise TimeoutError(f"nothing answers on port {port}")

    def play(self, parts: list[Part], seed: int = 1) -> Answers:
        """Send what ``parts`` ask for, one after the other."""
        times = self._arrivals(parts, np.random.default_rng(seed))
        sent = np.zeros(len(times), np.int64)
        got = np.full(len(times), NEVER, np.int64)
        with _socket() as door:
            with _before_all_else():
                _send(door, times, sent, got, self._ports)
            time.sleep(LAST_ANSWERS)
            _receive(door, got)
        latency = np.where(got == NEVER, NEVER, got - sent)
        return Answers((sent - sent[0]) / 1e9, latency)

    def _arrivals(self, parts: list[Part], chance: np.random.Generator) -> NDArray[np.float64]:
        """Seconds from the start."""
        times, began = [], 0.0
        for part in parts:
            rate = part.load * self._processors / self.service_seconds
            gaps = chance.exponential(1 / rate, int(part.seconds * rate * 1.5) + 10)
            arrivals = began + np.cumsum(gaps)
            began += part.seconds
            times.append(arrivals[arrivals < began])
        return np.concatenate(times)


def _socket() -> socket.socket:
    door = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    door.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    if os.geteuid() == 0:
        door.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 32 << 20)
    door.bind(("127.0.0.1", 0))
    return door


def _send(
    door: socket.socket,
    times: NDArray[np.float64],
    sent: NDArray[np.int64],
    got: NDArray[np.int64],
    ports: list[int],
) -> None:
    began = time.monotonic()
    for number, due in enumerate(times):
        ahead = began + due - time.monotonic()
        if ahead > 0:
            time.sleep(ahead)
        sent[number] = time.clock_gettime_ns(time.CLOCK_REALTIME)
        door.sendto(struct.pack("I", number), ("127.0.0.1", ports[number % len(ports)]))
        _receive(door, got)


@contextmanager
def _before_all_else() -> Iterator[None]:
    """This thread runs whenever it is ready to, where it may."""
    if os.geteuid() != 0:
        yield
        return
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def _receive(door: socket.socket, got: NDArray[np.int64]) -> None:
    """Note when the answers that are there have come."""
    while True:
        try:
            data, extra, _, _ = door.recvmsg(64, 128, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        seconds, nanoseconds = struct.unpack("qq", extra[0][2])
        got[struct.unpack("I", data)[0]] = seconds * 10**9 + nanoseconds
