"""What an attempt that failed leaves behind: the reason for people, and what to wait for before the next one."""

from typing import NamedTuple

from gang_scheduler.domain.pods.pod_shape import PodShape
from gang_scheduler.domain.reasons.explain import Explanation


class Wake(NamedTuple):
    """What has to happen before another attempt can succeed: ``need`` places for a shape, less use of a queue, or anything.

    ``own`` says that only a change of the gangs themselves can help.
    """

    shape: PodShape | None = None
    need: int = 0
    queue: str | None = None
    own: bool = False


ANYTHING = Wake()
OWN_CHANGE = Wake(own=True)


class Block(NamedTuple):
    """Why an attempt failed, and what to wait for."""

    explanation: Explanation
    wake: Wake
    hopeless: bool = False
    """Whether it cannot succeed in this cluster even when everything else is gone."""
