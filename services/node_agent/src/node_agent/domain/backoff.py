"""How long a container waits before it is started again.

A kubelet's rule: the first restart is immediate, then the pause doubles from a base up to a limit, counted from the end
of the last attempt; it is forgotten after the container left twice the limit behind without ending.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """The pause before the next start, and when it was last lengthened. Milliseconds."""

    pause_ms: int = 0
    at: int = 0


def due(backoff: Backoff, ended_at: int, limit_ms: int) -> int:
    """The earliest time of the next start of a container that ended at ``ended_at``."""
    return ended_at + (0 if _forgotten(backoff, ended_at, limit_ms) else backoff.pause_ms)


def lengthened(backoff: Backoff, ended_at: int, now: int, base_ms: int, limit_ms: int) -> Backoff:
    """The back-off after a restart at ``now``."""
    if backoff.pause_ms == 0 or _forgotten(backoff, ended_at, limit_ms):
        return Backoff(base_ms, now)
    return Backoff(min(backoff.pause_ms * 2, limit_ms), now)


def _forgotten(backoff: Backoff, ended_at: int, limit_ms: int) -> bool:
    return backoff.pause_ms > 0 and ended_at - backoff.at > 2 * limit_ms
