"""How many pods of a workload may be on the move or missing at one time, and how soon one follows another."""

from collections.abc import Iterable

from descheduler.domain.policy.arguments import Share
from descheduler.domain.policy.migration_args import MigrationArgs, ObjectLimiter

_TENTH = Share(10, True)


def most_migrating(args: MigrationArgs, replicas: int) -> int:
    """How many of ``replicas`` may migrate at one time."""
    return _most(args.per_workload, replicas)


def most_unavailable(args: MigrationArgs, replicas: int) -> int:
    """How many of ``replicas`` may be unavailable, those that migrate included."""
    return _most(args.unavailable, replicas)


def _most(given: Share | None, replicas: int) -> int:
    """Where nothing is said a tenth of more than ten, two of four to ten, one of fewer."""
    if given is None:
        given = _TENTH if replicas > 10 else Share(2 if replicas >= 4 else 1, False)
    return given.of(replicas)


def next_turn(limiter: ObjectLimiter, most: int, times: Iterable[int]) -> int:
    """When the next may go, in ms since the epoch, after those that went at ``times``; 0 for at any time.

    A bucket of ``burst`` tokens that fills at ``most`` in ``span_ms``. Times are multiplied by ``most``, so that all is whole.
    """
    most = limiter.most.of(most) if limiter.most is not None else most
    interval, full = limiter.span_ms, limiter.burst * limiter.span_ms
    level, last = full, 0
    for at in sorted(times):
        level = min(full, level + (at - last) * most) - interval
        last = at
    return 0 if level >= interval else last - (-(interval - level) // most)
