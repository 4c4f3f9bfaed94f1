"""How many slots would have been enough: recent requests played again with fewer, which is what shrinking would have meant."""

from collections.abc import Sequence

from inference_autoscaler.domain.target.offered import Bucket, settled

_STEPS = 10
"""Halvings of the range: the answer is right to a thousandth of it."""


def slots_needed(buckets: Sequence[Bucket], service_us: int, wait_ms: int, late_permille: int) -> int:
    """The fewest slots, in thousandths, with which at most so many of a thousand requests would have waited longer than ``wait_ms``."""
    most = max((one.load_milli for one in buckets), default=0)
    if not service_us or not most:
        return most
    enough, too_few = most, 0
    for _ in range(_STEPS):
        tried = (enough + too_few) // 2
        if keeps(buckets, tried, service_us, wait_ms, late_permille):
            enough = tried
        else:
            too_few = tried
    return enough


def keeps(buckets: Sequence[Bucket], slots_milli: int, service_us: int, wait_ms: int, late_permille: int) -> bool:
    """Whether the goal would have been kept with so many slots, in thousandths.

    Requests are a fluid here: ``present`` are those that wait or are in progress, and the slots drain them at their rate.
    """
    allowed = sum(one.came_milli for one in buckets) * late_permille // 1000
    present, late = buckets[0].load_milli, 0
    for one in buckets[1:]:
        present += one.came_milli
        drained = slots_milli * one.length * 1000 // service_us
        present = max(settled(present, one.length, service_us), present - drained)
        if present * service_us > slots_milli * (service_us + wait_ms * 1000):
            late += one.came_milli
            if late > allowed:
                return False
    return True
