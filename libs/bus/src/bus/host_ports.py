"""Free ports on the loopback interface for servers that clients come back to."""

import random
import socket
from collections.abc import Container
from contextlib import ExitStack
from pathlib import Path

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_CANDIDATES = 12_000
_LOWEST = 1_025


def free_port() -> int:
    """A port on the loopback interface that nobody listens on just now."""
    return free_ports(1)[0]


def free_ports(count: int, besides: Container[int] = ()) -> list[int]:
    """Different ports on the loopback interface that nobody listens on just now, ``besides`` those that are spoken for.

    They are from below the range that the kernel gives to outgoing connections: a client that tries again and again to
    reach a server that is away would sooner or later be given the server's own port, be connected to itself, and keep
    the server from coming back.
    """
    found: list[int] = []
    with ExitStack() as held:
        for port in _candidates():
            probe = held.enter_context(socket.socket())
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            chosen = int(probe.getsockname()[1])
            if chosen not in besides:
                found.append(chosen)
            if len(found) == count:
                return found
    raise OSError(f"there are no {count} free ports on 127.0.0.1")


def _candidates() -> list[int]:
    """Ports to try, in random order, so that systems which start at the same time seldom try the same."""
    try:
        end = int(_RANGE.read_text().split()[0])
    except (OSError, ValueError):
        end = 0
    start = max(_LOWEST, end - _CANDIDATES)
    # Where the kernel leaves no room below its own range, its choice has to do.
    return random.sample(range(start, end), min(512, end - start)) if end - start > 1_000 else [0] * 64
