"""What takes the place of how full nodes are as the score of those that have cards: the foresight, or another policy."""

from typing import Any, Protocol

from gang_scheduler.domain.columns.vectors import Ints
from gang_scheduler.domain.pods.pod_shape import PodShape
from gang_scheduler.domain.score.appraisal import Appraisal
from gang_scheduler.domain.score.mixture import Census


class Outlook(Protocol):
    """``version`` is another one whenever scores have become others by themselves, and 0 as long as there are none."""

    version: int
    census: Census
    appraisal: Appraisal | None
    """From which compiled code finds the same scores; None where it cannot."""

    def renew(self) -> None:
        """A pass begins."""

    def keep_up(self) -> None:
        """Somebody looks for a place in the midst of a pass."""

    def scores(self, shape: PodShape, places: Ints) -> Ints:
        """For each of ``places``, where a pod of ``shape`` fits, at most ``prices.BEST`` and not below 0; more is better."""

    def remember(self) -> bytes:
        """What does not follow from the books, as JSON; nothing when there is nothing."""

    def restore(self, data: Any) -> None:
        """Go on with what a predecessor remembered, as plain data."""
